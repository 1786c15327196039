// The page's requests to the service: JSON answers, and the stream of events. All addresses are relative to the page, so
// that it works at the root, below a prefix, and behind a proxy that removes one.

const TOKEN = "heapray-token";

/** Request that failed, or that was not answered. */
export class Failure extends Error {
  /**
   * @param {string} text for users
   * @param {number} status of the answer; 0 if there was none
   */
  constructor(text, status) {
    super(text);
    this.status = status;
  }
}

/** @returns {string} the token that the user entered on this page; empty if there is none */
export function token() {
  return sessionStorage.getItem(TOKEN) ?? "";
}

/** @param {string} value kept until the tab is closed; empty to forget it */
export function setToken(value) {
  if (value === "") {
    sessionStorage.removeItem(TOKEN);
  } else {
    sessionStorage.setItem(TOKEN, value);
  }
}

/**
 * @param {string} path
 * @param {string} method
 * @param {AbortSignal} [signal]
 * @returns {Promise<Response>} a success
 */
async function ask(path, method, signal) {
  /** @type {Record<string, string>} */
  const headers = token() === "" ? {} : { authorization: `Bearer ${token()}` };
  let response;
  try {
    response = await fetch(path, { method, headers, cache: "no-store", signal: signal ?? null });
  } catch {
    throw new Failure("The service does not answer.", 0);
  }
  if (!response.ok) {
    const body = await response.json().catch(() => ({}));
    throw new Failure(typeof body.error === "string" ? body.error : `The service answered ${response.status}.`, response.status);
  }
  return response;
}

/**
 * @param {string} path
 * @param {string} method
 * @returns {Promise<any>} the answer's JSON; nothing if the answer is empty
 */
export async function call(path, method) {
  const response = await ask(path, method);
  return response.status === 204 ? undefined : response.json();
}

/**
 * Reads one answer of the stream to its end.
 * @param {AbortSignal} signal ends it
 * @param {(event: string, data: any) => void} heard
 */
export async function listen(signal, heard) {
  const response = await ask("live", "GET", signal);
  if (response.body === null) {
    return;
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      return;
    }
    text += value;
    const events = text.split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) {
      const name = /^event: (.*)$/m.exec(event)?.[1];
      const data = /^data: (.*)$/m.exec(event)?.[1];
      if (name !== undefined && data !== undefined) {
        heard(name, JSON.parse(data));
      }
    }
  }
}

/**
 * @param {string} path of an output
 * @returns {Promise<string>} an address of it that a link may have
 */
export async function linkable(path) {
  if (token() === "") {
    return path;
  }
  const { ticket } = await call(`ticket?for=${encodeURIComponent(path)}`, "POST");
  return `${path}?ticket=${encodeURIComponent(ticket)}`;
}
