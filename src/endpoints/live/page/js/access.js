// The dialog for the token, if the service requires one.

import { byId } from "../../../../../report/page/js/dom.js";
import { setToken, token } from "./connection.js";

/**
 * Asks for the token and waits for it.
 * @returns {Promise<void>} when the user has entered one
 */
export function askForToken() {
  const form = byId("access", HTMLFormElement);
  const input = byId("token", HTMLInputElement);
  byId("access-note", HTMLElement).textContent = token() === "" ? "" : "That is not the token.";
  setToken("");
  byId("content", HTMLElement).hidden = true;
  form.hidden = false;
  input.value = "";
  input.focus();
  return new Promise((resolve) => {
    form.addEventListener(
      "submit",
      (event) => {
        event.preventDefault();
        setToken(input.value.trim());
        input.value = "";
        form.hidden = true;
        byId("content", HTMLElement).hidden = false;
        resolve();
      },
      { once: true },
    );
  });
}
