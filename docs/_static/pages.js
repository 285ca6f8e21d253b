/* The theme has two asides; who listens to the page is told which is which. */
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const names = { ".sidebar-drawer": "All pages", ".toc-drawer": "This page" };
  for (const [place, name] of Object.entries(names))
    document.querySelector(place)?.setAttribute("aria-label", name);
});
