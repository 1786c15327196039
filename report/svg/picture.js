// Zoom, search and details for each picture of the document. The numbers are those of draw.rs.
"use strict";
for (const svg of document.querySelectorAll("svg.flames")) {
  const WIDTH = 1200, SIDE = 10, CHARACTER = 6.6, SMALL = 5.6;
  const part = (name) => svg.querySelector("." + name);
  const total = Number(svg.dataset.total);
  const boxes = [...svg.querySelectorAll(".box")].map((group) => {
    const [start, wide, depth] = group.dataset.at.split(",").map(Number);
    const [label, placed] = group.querySelectorAll("text");
    const [name, what, place = ""] = group.querySelector("title").textContent.split("\n");
    return { group, start, wide, depth, label, placed, name, what, place, rect: group.querySelector("rect") };
  });
  const { reset, search, found, details } = { reset: part("reset"), search: part("search"), found: part("found"), details: part("details") };
  const show = (element, on) => element.setAttribute("visibility", on ? "visible" : "hidden");
  const fitted = (text, chars) => (text.length <= chars ? text : chars < 4 ? "" : text.slice(0, chars - 1) + "…");
  const fittedName = (name, chars) => {
    const parts = name.split("::");
    while (parts.length > 1 && parts.join("::").length > chars && !(parts.length === 2 && parts[1].startsWith("{"))) {
      parts.shift();
    }
    return fitted(parts.join("::"), chars);
  };
  const short = (place) => place.split("/").slice(-2).join("/");

  function zoom(to) {
    const unit = (WIDTH - 2 * SIDE) / to.wide;
    for (const box of boxes) {
      const above = box.depth < to.depth && box.start <= to.start && box.start + box.wide >= to.start + to.wide;
      const within = box.depth >= to.depth && box.start >= to.start && box.start + box.wide <= to.start + to.wide;
      show(box.group, above || within);
      if (!above && !within) {
        continue;
      }
      const x = above ? SIDE : SIDE + (box.start - to.start) * unit;
      const width = above ? WIDTH - 2 * SIDE : box.wide * unit;
      box.group.classList.toggle("above", above);
      box.rect.setAttribute("x", x);
      box.rect.setAttribute("width", Math.max(width - 0.6, 0.3));
      box.label.setAttribute("x", x + 4);
      box.label.textContent = fittedName(box.name, Math.floor(Math.max(width - 8, 0) / CHARACTER));
      box.placed?.setAttribute("x", x + 4);
      box.placed?.replaceChildren(fitted(short(box.place), Math.floor(Math.max(width - 8, 0) / SMALL)));
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
    // A box below another match adds nothing.
    const hits = [];
    for (const box of boxes) {
      const hit = matches(box.name) || matches(box.place);
      box.group.classList.toggle("hit", hit);
      if (hit) {
        hits.push(box);
      }
    }
    hits.sort((a, b) => a.depth - b.depth);
    const outer = [];
    for (const box of hits) {
      if (!outer.some((one) => box.start >= one.start && box.start + box.wide <= one.start + one.wide)) {
        outer.push(box);
      }
    }
    const wide = outer.reduce((sum, box) => sum + box.wide, 0);
    found.textContent = wanted === "" ? "" : `“${fitted(wanted, 40)}”: ${((100 * wide) / total).toFixed(1)} %`;
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
      details.textContent = fitted(`${box.what}  ${box.name}  ${box.place}`, 190);
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
