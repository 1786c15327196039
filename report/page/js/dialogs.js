// The help dialog.

import { byId } from "./dom.js";

export function prepareDialogs() {
  const dialog = byId("help", HTMLDialogElement);
  byId("open-help", HTMLButtonElement).addEventListener("click", () => dialog.showModal());
  // A click on the backdrop hits the dialog itself, one inside hits what it holds.
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) {
      dialog.close();
    }
  });
}
