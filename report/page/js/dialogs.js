// The totals and help dialogs.

import { byId, el } from "./dom.js";
import { totalsOf } from "./header.js";

/** @param {import("./decode.js").Head} head */
export function prepareDialogs(head) {
  const sections = totalsOf(head).filter(([, lines]) => lines.length > 0);
  byId("totals-body", HTMLElement).replaceChildren(
    ...sections.map(([heading, lines]) =>
      el(
        "section",
        "",
        el("h3", "", heading),
        el("dl", "", ...lines.map(([name, value]) => el("div", "", el("dt", "", name), el("dd", "", value)))),
      ),
    ),
  );
  for (const id of ["totals", "help"]) {
    const dialog = byId(id, HTMLDialogElement);
    byId(`open-${id}`, HTMLButtonElement).addEventListener("click", () => dialog.showModal());
    // A click on the backdrop hits the dialog itself, one inside hits what it holds.
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) {
        dialog.close();
      }
    });
  }
}
