// Calls of the admin API. Local reads need no token; changes need it: it is requested once and kept for this tab.
import { h } from "./dom.js";

const place = "rockpool-token";

/** Takes the token from the address (`#token=…`), also of an open tab, and removes it from there immediately. True if one was there. */
export function takeToken() {
  const given = /^#token=([^&]+)$/.exec(location.hash);
  if (!given) return false;
  try { sessionStorage.setItem(place, decodeURIComponent(given[1])); } catch { /* A malformed token is none: a change asks for it. */ }
  history.replaceState(null, "", "#/");
  return true;
}

export const hasToken = () => sessionStorage.getItem(place) !== null;

/** Exchanges the one-time code of `rockpool dashboard` (`#once=…`) for the token. An old code is ignored: changes then ask for the token. */
export async function takeCode() {
  const given = /^#once=([0-9a-f]+)$/.exec(location.hash);
  if (!given) return false;
  history.replaceState(null, "", "#/");
  try {
    const { token } = await send("POST", "/v1/dashboard/token", { code: given[1] }, { "Content-Type": "application/json" });
    sessionStorage.setItem(place, token);
  } catch {
    // The dialog asks for the token when one is needed.
  }
  return true;
}

export class Problem extends Error {
  constructor(status, document) {
    super(document?.detail ?? document?.title ?? `The server answered ${status}.`);
    this.status = status;
    this.document = document;
  }
}

async function send(method, target, body, headers) {
  const answer = await fetch(target, {
    method, headers, cache: "no-store", body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.text();
  let document = null;
  try { document = text ? JSON.parse(text) : null; } catch { document = { detail: text }; }
  if (!answer.ok) throw new Problem(answer.status, document);
  return document;
}

/** The text of a page that is no JSON. */
export const text = async (target) => (await send("GET", target, undefined, { Accept: "text/markdown" })).detail;

export const get = (target) => send("GET", target, undefined, { Accept: "application/json" });

/** Sends a change. Returns undefined if no token was entered. */
export async function change(method, target, body) {
  for (let isRetry = false; ; isRetry = true) {
    const token = sessionStorage.getItem(place) ?? (await askToken(isRetry));
    if (!token) return undefined;
    try {
      const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
      return (await send(method, target, body, headers)) ?? {};
    } catch (problem) {
      if (problem.status !== 401) throw problem;
      sessionStorage.removeItem(place);
    }
  }
}

/** Reads what only the owner of the token may see. Undefined if no token was entered. */
export const readSecret = (target) => change("GET", target);

export const query = (target, members) => {
  const pairs = Object.entries(members).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return pairs.length ? `${target}?${pairs.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&")}` : target;
};

/** A dialog that resolves to the submitted value, or null. */
export function dialog(title, content, { action = "Continue", tone = "", read = () => true } = {}) {
  return new Promise((resolve) => {
    let result = null;
    const form = h("form", { method: "dialog", onsubmit: (event) => { event.preventDefault(); result = read(form); box.close(); } },
      h("h2", { id: "dialog-title" }, title), content,
      h("div", { class: "actions" },
        h("button", { class: `button primary ${tone}` }, action),
        // A destructive action is never the one that Enter makes by itself.
        h("button", { class: "button", type: "button", autofocus: tone === "bad", onclick: () => box.close() }, "Not now")));
    const box = h("dialog", { "aria-labelledby": "dialog-title" }, form);
    const before = document.activeElement;
    box.onclose = () => { box.remove(); if (before?.isConnected) before.focus(); resolve(result); };
    document.body.append(box);
    box.showModal();
  });
}

export const confirm = (title, words, action, tone = "bad") => dialog(title, h("p", {}, words), { action, tone });

async function askToken(isRetry) {
  const place = await get("/v1/status").then((status) => status.stateDir, () => null);
  return askTokenOf(place || "~/.local/state/rockpool", isRetry);
}

function askTokenOf(stateDir, isRetry) {
  return dialog("Changes need the admin token", [
    isRetry ? h("p", { class: "problem", role: "alert" }, "That was not the token of this server.") : null,
    h("p", {}, "The command ", h("code", {}, "rockpool dashboard"), " opens this page so that it may change things. Or give the token here; its file is readable by the owner of the server only:"),
    h("pre", { tabindex: "0" }, `cat ${stateDir}/admin-token`),
    h("label", { for: "token" }, "Admin token"),
    h("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true, autofocus: true }),
    h("p", { class: "quiet small" }, "Stored for this tab only, until it is closed."),
  ], {
    read: (form) => {
      const token = form.querySelector("#token").value.trim();
      if (token) sessionStorage.setItem(place, token);
      return token;
    },
  });
}
