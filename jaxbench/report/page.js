"use strict";
(() => {
  // A link into a folded part opens it.
  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();
  // Tables can be sorted by a column. Without this script they are as complete, in their own order.
  const number = text => {
    const found = /^[^\d+\-−]*([+\-−]?[\d,]*\.?\d+(?:e[+-]?\d+)?)/.exec(text.trim());
    return found ? Number(found[1].replace(/,/g, "").replace("−", "-")) : NaN;
  };
  for (const table of document.querySelectorAll("table")) {
    const body = table.tBodies[0], heads = table.tHead ? [...table.tHead.rows[0].cells] : [];
    if (!body || body.rows.length < 3) continue;
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.textContent = "↕";
      button.className = "sort";
      button.setAttribute("aria-label", `sort by ${head.textContent.trim()}`);
      head.append(" ", button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending", rows = [...body.rows];
        const key = row => (row.cells[column] ? row.cells[column].textContent : "");
        const numbers = rows.filter(row => key(row).trim()).every(row => !isNaN(number(key(row))));
        const compare = numbers ? (a, b) => number(key(a)) - number(key(b)) : (a, b) => key(a).localeCompare(key(b));
        const filled = rows.filter(row => key(row).trim()).sort(compare);
        if (down) filled.reverse();
        for (const row of [...filled, ...rows.filter(row => !key(row).trim())]) body.append(row);
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
      });
    });
  }
})();
