/* The other versions are listed in versions.json beside the folders of all of them; without it (a
   single build, or pages opened from a disk) the switch shows the version that is being read. */
"use strict";
(async () => {
  const box = document.getElementById("version-read");
  const above = new URL(box.dataset.root + "../", window.location.href);
  let known = [];
  try {
    const answer = await fetch(new URL("versions.json", above));
    known = answer.ok ? await answer.json() : [];
  } catch {
    return;
  }
  for (const version of known) {
    if (version === box.dataset.current) continue;
    const option = document.createElement("option");
    option.textContent = version;
    option.value = new URL(`${version}/`, above).href;
    box.append(option);
  }
  box.addEventListener("change", () => {
    if (box.value) window.location.href = box.value;
  });
})();
