// The help dialog.

import { byId } from "./dom.js";

export function prepareDialogs() {
  const dialog = byId("help", HTMLDialogElement);
  byId("open-help", HTMLButtonElement).addEventListener("click", () => dialog.showModal());
  // A click on the backdrop hits the dialog itself; a click inside hits one of its elements.
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) {
      dialog.close();
    }
  });
}
