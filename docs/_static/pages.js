/* The theme has two asides; who listens to the page is told which is which. Tables that are wider than
   the page, and output longer than its box, are scrolled with the keyboard too. Pictures of the gallery
   lead to pages: their links, whose text is hidden, keep its name. Works cited are items of their list. */
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const names = { ".sidebar-drawer": "All pages", ".toc-drawer": "This page" };
  for (const [place, name] of Object.entries(names))
    document.querySelector(place)?.setAttribute("aria-label", name);
  for (const table of document.querySelectorAll(".table-wrapper")) table.tabIndex = 0;
  for (const output of document.querySelectorAll("pre"))
    if (output.scrollHeight > output.clientHeight + 1) output.tabIndex = 0;
  for (const link of document.querySelectorAll(".sphx-glr-thumbcontainer a"))
    link.setAttribute("aria-label", link.textContent);
  for (const twin of [...document.querySelectorAll("#sg-tag-list")].slice(1)) twin.removeAttribute("id");
  for (const work of document.querySelectorAll(".citation-list > .citation"))
    work.setAttribute("role", "listitem");
  if (!document.querySelector("h1")) {
    const heading = document.createElement("h1");
    heading.textContent = document.title;
    document.querySelector("article, main")?.prepend(heading);
  }
});
