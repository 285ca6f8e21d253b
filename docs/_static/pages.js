/* The theme has two asides; who listens to the page is told which is which. Tables that are wider than
   the page are scrolled with the keyboard too. */
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const names = { ".sidebar-drawer": "All pages", ".toc-drawer": "This page" };
  for (const [place, name] of Object.entries(names))
    document.querySelector(place)?.setAttribute("aria-label", name);
  for (const table of document.querySelectorAll(".table-wrapper")) table.tabIndex = 0;
});
