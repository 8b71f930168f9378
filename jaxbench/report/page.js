"use strict";
(() => {
  // A link into a folded part opens it.
  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    if (target) target.scrollIntoView();
  };
  // A phone shows the first headlines, lines and section and one figure; the rest is one touch away.
  const LETTERS = 300, LINES = 4;
  const shorten = (last, rest, inner) => {
    let fold = last.nextElementSibling;
    if (!rest.length) return;
    if (!fold || fold.tagName !== "DETAILS") {
      fold = document.createElement("details");
      fold.append(document.createElement("summary"), document.createElement(inner));
      last.after(fold);
    }
    const all = fold.querySelector(inner);
    all.prepend(...rest);
    fold.querySelector("summary").textContent = `${all.children.length} more`;
  };
  if (matchMedia("screen and (max-width: 40rem)").matches) {
    for (const fold of document.querySelectorAll("details.second")) fold.open = false;
    document.querySelectorAll("section:not(.alarm) > ul").forEach(list => shorten(list, [...list.children].slice(1), "ul"));
    const sections = [...document.querySelectorAll("body > section:not(.alarm, .folds, .definitions)")];
    for (const section of sections.slice(1)) {
      const fold = document.createElement("details"), name = document.createElement("summary");
      const heading = section.querySelector("h2");
      name.append(...heading.childNodes);
      fold.id = heading.id;
      heading.removeAttribute("id");
      fold.append(name, ...section.childNodes);
      heading.remove();
      section.append(fold);
    }
    const headlines = [...document.querySelectorAll("body > p.headline")];
    let letters = 0;
    const shown = headlines.filter(line => (letters += line.textContent.length) <= LETTERS).length || 1;
    if (headlines.length > shown) shorten(headlines[shown - 1], headlines.slice(shown), "div");
    const summary = document.querySelector("h2#summary + .wide tbody");
    const rest = summary ? [...summary.rows].slice(LINES) : [];
    if (rest.length > 1) {
      const more = document.createElement("button");
      more.className = "more";
      more.textContent = `${rest.length} more lines`;
      more.addEventListener("click", () => {
        rest.forEach(row => { row.hidden = false; });
        more.remove();
      });
      rest.forEach(row => { row.hidden = true; });
      summary.closest(".wide").after(more);
    }
  }
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
        document.querySelector("button.more")?.click();  // sorting needs all lines
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
