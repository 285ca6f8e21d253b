"use strict";
(() => {
  /* Columns sort by a click or by the keyboard on their heads; texts are read, never run. */
  const value = (row, place, kind) => {
    const cell = row.cells[place];
    return kind === "number" ? Number(cell.dataset.value) : cell.textContent.trim().toLowerCase();
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, place) => {
      const kind = head.dataset.sort;
      if (!kind) return;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const first = kind === "number" && place > 0 ? "descending" : "ascending";
        const other = first === "ascending" ? "descending" : "ascending";
        const order = head.getAttribute("aria-sort") === first ? other : first;
        heads.forEach((one) => one.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        const body = table.tBodies[0];
        const rows = [...body.rows].map((row) => [value(row, place, kind), row]);
        rows.sort(([a], [b]) => sign * (a < b ? -1 : a > b ? 1 : 0));
        body.append(...rows.map(([, row]) => row));
      });
    });
  }
  for (const search of document.querySelectorAll("input[data-table]")) {
    const rows = [...document.getElementById(search.dataset.table).tBodies[0].rows];
    const found = search.parentElement.querySelector("[role=status]");
    search.addEventListener("input", () => {
      const wanted = search.value.trim().toLowerCase();
      let count = 0;
      for (const row of rows) {
        const shown = row.textContent.toLowerCase().includes(wanted);
        row.hidden = !shown;
        count += shown;
      }
      found.textContent = wanted ? `${count} of ${rows.length}` : "";
    });
  }
})();
