// Zoom, search and details for each picture of the document. The numbers are those of svg.rs.
"use strict";
for (const svg of document.querySelectorAll("svg.icicles")) {
  const WIDTH = 1200, SIDE = 10, CHARACTER = 6.6, SMALL = 5.6;
  const part = (name) => svg.querySelector("." + name);
  const total = Number(svg.dataset.total);
  const boxes = [...svg.querySelectorAll(".box")].map((group) => {
    const [start, bytes, depth] = group.dataset.at.split(",").map(Number);
    const [name, place] = group.querySelectorAll("text");
    return { group, start, bytes, depth, name, place, rect: group.querySelector("rect") };
  });
  const { reset, search, found, details } = { reset: part("reset"), search: part("search"), found: part("found"), details: part("details") };
  const show = (element, on) => element.setAttribute("visibility", on ? "visible" : "hidden");
  const fitted = (text, chars) => (text.length <= chars ? text : chars < 3 ? "" : text.slice(0, chars - 1) + "…");
  const short = (place) => place.split("/").slice(-2).join("/");

  function zoom(to) {
    const unit = (WIDTH - 2 * SIDE) / to.bytes;
    for (const box of boxes) {
      const above = box.depth < to.depth && box.start <= to.start && box.start + box.bytes >= to.start + to.bytes;
      const within = box.depth >= to.depth && box.start >= to.start && box.start + box.bytes <= to.start + to.bytes;
      show(box.group, above || within);
      if (!above && !within) {
        continue;
      }
      const x = above ? SIDE : SIDE + (box.start - to.start) * unit;
      const width = above ? WIDTH - 2 * SIDE : box.bytes * unit;
      box.group.classList.toggle("above", above);
      box.rect.setAttribute("x", x);
      box.rect.setAttribute("width", Math.max(width - 0.6, 0.3));
      box.name.setAttribute("x", x + 4);
      box.place.setAttribute("x", x + 4);
      box.name.textContent = fitted(box.group.dataset.name, Math.max(width - 8, 0) / CHARACTER);
      box.place.textContent = fitted(short(box.group.dataset.place), Math.max(width - 8, 0) / SMALL);
    }
    show(reset, to !== boxes[0]);
  }

  function look() {
    const wanted = prompt("Functions or files that have this in their name (a regular expression); nothing to clear:", "");
    if (wanted === null) {
      return;
    }
    let matches = () => false;
    if (wanted !== "") {
      try {
        const pattern = new RegExp(wanted, "i");
        matches = (text) => pattern.test(text);
      } catch {
        matches = (text) => text.includes(wanted);
      }
    }
    // A box below another that was found adds nothing.
    const hits = [];
    for (const box of boxes) {
      const hit = matches(box.group.dataset.name) || matches(box.group.dataset.place);
      box.group.classList.toggle("hit", hit);
      if (hit) {
        hits.push(box);
      }
    }
    hits.sort((a, b) => a.depth - b.depth);
    const outer = [];
    for (const box of hits) {
      if (!outer.some((one) => box.start >= one.start && box.start + box.bytes <= one.start + one.bytes)) {
        outer.push(box);
      }
    }
    const bytes = outer.reduce((sum, box) => sum + box.bytes, 0);
    found.textContent = wanted === "" ? "" : `“${fitted(wanted, 40)}”: ${((100 * bytes) / total).toFixed(1)} %`;
  }

  const act = (element, action) => {
    element.addEventListener("click", action);
    element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        action();
      }
    });
  };
  for (const box of boxes) {
    box.group.setAttribute("tabindex", "0");
    act(box.group, () => zoom(box));
    const tell = () => {
      const { name, place, what } = box.group.dataset;
      details.textContent = fitted(`${what}  ${name}  ${place}`, 190);
    };
    box.group.addEventListener("mouseenter", tell);
    box.group.addEventListener("focus", tell);
  }
  if (boxes.length > 0) {
    act(reset, () => zoom(boxes[0]));
    act(search, look);
    show(search, true);
  }
}
for (const button of document.querySelectorAll("button[data-full]")) {
  const pane = document.getElementById(button.dataset.full);
  button.hidden = !document.fullscreenEnabled;
  button.addEventListener("click", () => (document.fullscreenElement ? document.exitFullscreen() : pane.requestFullscreen()));
}
