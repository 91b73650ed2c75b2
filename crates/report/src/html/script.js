// Script of a report: values at the pointer, series on and off, sorting and copying of tables,
// download of drawings. It requests nothing, and the page is complete without it.
"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const word = (name) => document.querySelector(`#words [data-word="${name}"]`).textContent;
  const make = (name, text, parent) => {
    const element = document.createElement(name);
    if (text) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  };

  const live = make("p", "", document.body);
  live.id = "told";
  live.className = "unseen";
  live.setAttribute("aria-live", "polite");
  const tip = make("div", "", document.body);
  tip.className = "tip";
  tip.setAttribute("aria-hidden", "true");
  tip.hidden = true;

  function show(point) {
    hide();
    point.classList.add("chosen");
    tip.textContent = live.textContent = point.dataset.told;
    tip.hidden = false;
    const place = point.getBoundingClientRect();
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    const left = place.x + place.width / 2 - tip.offsetWidth / 2;
    tip.style.left = `${scrollX + Math.max(8, Math.min(left, room))}px`;
    const above = place.y - tip.offsetHeight - 8;
    tip.style.top = `${scrollY + (above > 0 ? above : place.bottom + 8)}px`;
  }

  function hide() {
    all(".chosen").forEach((point) => point.classList.remove("chosen"));
    tip.hidden = true;
  }

  // A figure is one tab stop; arrow keys move between its points.
  function readable(figure) {
    const points = all(".point", figure);
    const seen = () => points.filter((point) => !point.closest(".off"));
    const choose = (point) => {
      points.forEach((one) => one.setAttribute("tabindex", one === point ? "0" : "-1"));
    };
    for (const point of points) {
      const title = point.querySelector("title");
      point.dataset.told = title.textContent.trim();
      title.remove();
      point.setAttribute("role", "img");
      point.setAttribute("aria-label", point.dataset.told);
      point.addEventListener("mouseenter", () => show(point));
      point.addEventListener("mouseleave", hide);
      point.addEventListener("focus", () => { choose(point); show(point); });
      point.addEventListener("blur", hide);
      point.addEventListener("keydown", (event) => {
        const now = seen();
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (event.key === "Escape") hide();
        if (!step) return;
        event.preventDefault();
        now[(now.indexOf(point) + step + now.length) % now.length].focus();
      });
    }
    choose(points[0]);
    return () => choose(seen()[0]);
  }

  function switchable(figure, moved) {
    for (const item of all(".legend li", figure)) {
      const button = make("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(...item.childNodes);
      item.append(button);
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(on));
        for (const series of all("g.series", figure)) {
          if (series.dataset.series === item.dataset.series) series.classList.toggle("off", !on);
        }
        moved();
      });
    }
  }

  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const text = (cell) => cell.innerText.replaceAll(/\s*\n\s*/g, " ").trim();
  const lines = (rows) => rows.map((row) => row.map(quoted).join(",")).join("\n") + "\n";
  const ofTable = (table) => lines([...table.rows].map((row) => [...row.cells].map(text)));
  const ofFigure = (figure) =>
    lines([["series", "x", "y"], ...all(".point", figure).map(({ dataset }) => [dataset.series, dataset.x, dataset.y])]);

  function copy(button, csv) {
    // For browsers without clipboard access for local files.
    const area = make("textarea", csv, document.body);
    area.className = "unseen";
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    const name = button.textContent;
    button.textContent = word(done ? "copied" : "not-copied");
    live.textContent = button.textContent;
    setTimeout(() => { button.textContent = name; }, 1500);
  }

  const LOOKS = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-weight", "display"];
  function save(svg, title) {
    const drawing = svg.cloneNode(true);
    const copies = [drawing, ...all("*", drawing)];
    [svg, ...all("*", svg)].forEach((element, index) => {
      const look = getComputedStyle(element);
      for (const name of LOOKS) copies[index].style.setProperty(name, look.getPropertyValue(name));
    });
    drawing.setAttribute("xmlns", "http" + "://www.w3.org/2000/svg");
    drawing.style.fontFamily = "sans-serif";
    drawing.style.background = getComputedStyle(document.body).backgroundColor;
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([drawing.outerHTML], { type: "image/svg+xml" }));
    link.download = `${title.replaceAll(/[^\p{L}\p{N}]+/gu, "-")}.svg`;
    link.click();
    URL.revokeObjectURL(link.href);
  }

  function tool(root, name, act) {
    const button = make("button", word(name), root.querySelector(".tools"));
    button.type = "button";
    button.addEventListener("click", () => act(button));
  }

  const number = (cell) => {
    const shown = (cell.querySelector(".value") ?? cell).innerText.replaceAll(/[\s\u202f\u00a0]/g, "");
    const plain = document.documentElement.lang.startsWith("pt")
      ? shown.replaceAll(".", "").replace(",", ".")
      : shown.replaceAll(",", "");
    const found = /−?\d+(\.\d+)?/.exec(plain);
    return found ? Number(found[0].replace("−", "-")) : null;
  };

  // Rows stay in their group, and published rows below.
  function sort(table, column, down) {
    for (const body of all("tbody:not(.published)", table)) {
      const rows = [...body.rows].filter((row) => !row.classList.contains("group"));
      const key = (row) => row.cells[column] && (column === 0 ? text(row.cells[0]) : number(row.cells[column]));
      const order = (a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x == null || y == null) return (x == null) - (y == null);
        return (typeof x === "string" ? x.localeCompare(y) : x - y) * (down ? -1 : 1);
      };
      body.append(...rows.sort(order));
    }
  }

  function sortable(table) {
    const head = table.tHead.rows;
    if (head.length !== 1) return;
    [...head[0].cells].forEach((cell, column) => {
      const button = make("button");
      button.type = "button";
      button.className = "sort";
      button.title = word("sort");
      button.append(...cell.childNodes);
      cell.append(button);
      button.addEventListener("click", () => {
        const down = cell.getAttribute("aria-sort") === "ascending";
        all("th", table.tHead).forEach((one) => one.removeAttribute("aria-sort"));
        cell.setAttribute("aria-sort", down ? "descending" : "ascending");
        sort(table, column, down);
      });
    });
  }

  for (const figure of all("figure")) {
    const svg = figure.querySelector(".plot svg");
    if (figure.querySelector(".point")) {
      switchable(figure, readable(figure));
      if (figure.querySelector(".tools")) tool(figure, "csv", (button) => copy(button, ofFigure(figure)));
    }
    const title = figure.querySelector("h4")?.textContent ?? document.title;
    if (figure.querySelector(".tools")) tool(figure, "svg", () => save(svg, title));
  }
  for (const sheet of all(".sheet")) {
    const table = sheet.querySelector("table");
    sortable(table);
    tool(sheet, "csv", (button) => copy(button, ofTable(table)));
  }
  // A link into a closed element opens it.
  const open = () => {
    const target = location.hash ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
    target?.closest("details")?.setAttribute("open", "");
  };
  addEventListener("hashchange", open);
  open();
  addEventListener("beforeprint", () => all("details").forEach((one) => { one.open = true; }));
})();
