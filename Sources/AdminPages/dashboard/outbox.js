// The outbox: what waits and why, each attempt of it, and what a person can do about it.
import { h, number, count, bytes, moment, clock, path, pretty, tag, empty } from "./dom.js";
import { get, change, confirm, dialog, query } from "./api.js";
import { push } from "./overview.js";

const filters = [["", "Open"], ["pending,inflight", "Waiting"], ["conflicted", "In conflict"], ["dead,parked,uncertain", "Stuck"],
  ["delivered,cancelled,superseded", "Ended"], ["all", "All"]];
const tones = { delivered: "good", dead: "bad", conflicted: "warn", uncertain: "warn", parked: "warn", inflight: "sea", pending: "sea" };
/** What can be done in each state; the rest has ended. */
const can = {
  retry: ["pending", "dead", "uncertain", "parked", "conflicted"],
  edit: ["pending", "dead", "uncertain", "parked", "conflicted"],
  cancel: ["pending", "uncertain", "parked", "inflight"],
  discard: ["pending", "dead", "uncertain", "parked", "conflicted"],
};

export const outbox = {
  topics: ["operation", "conflict"],
  title: () => "Outbox",
  async load(at) {
    const state = at.search.get("state") ?? "";
    return { state, page: await get(query("/v1/operations", { state, limit: 100, cursor: at.search.get("cursor") })) };
  },
  view: ({ state, page }, pool) => [
    h("div", { class: "heading top" }, h("h1", {}, "Outbox"),
      h("button", { class: "button primary", onclick: () => push(pool) }, "Sync now")),
    h("nav", { class: "filters", "aria-label": "Which writes" }, filters.map(([value, name]) =>
      h("a", { href: value ? `#/outbox?state=${value}` : "#/outbox", "aria-current": value === state ? "true" : null }, name))),
    page.items.length === 0 ? nothing(state) : h("ul", { class: "operations" }, page.items.map(row)),
    page.next ? h("p", {}, h("a", { class: "button", href: `#/outbox?state=${state}&cursor=${encodeURIComponent(page.next)}` }, "More")) : null,
  ],
};

const nothing = (state) => state === ""
  ? empty("Nothing waits", "Every write that was taken has been delivered. The next one that cannot be sent will appear here by itself.")
  : empty("None of these", h("a", { href: "#/outbox?state=all" }, "Show all that are kept"));

const row = (one) => h("li", { "data-key": one.id, "data-state": one.state },
  h("a", { class: "operation", href: `#/outbox/${one.id}` },
    h("span", { class: "operation-name" }, h("b", { class: "method" }, one.method), " ", h("span", { class: "mono wrap" }, path(one.url))),
    tag(one.state, tones[one.state]),
    h("span", { class: "why" }, one.waiting ?? ended(one)),
    h("span", { class: "quiet small" }, one.upstream, " · taken ", moment(one.acceptedAt), one.attempts ? ` · ${count(one.attempts, "attempt")}` : "")));

function ended(one) {
  if (one.state === "delivered") return one.serverId ? `became ${one.serverId} at the upstream` : `answered ${one.result?.status ?? ""}`.trim();
  if (one.state === "superseded") return "another one has taken its place";
  return one.reason ?? "";
}

export const operation = {
  topics: ["operation", "conflict", "reachability"],
  title: (one) => `${one.method} ${path(one.url)}`,
  load: (at) => get(`/v1/operations/${at.parts[0]}`),
  view: (one, pool) => [
    h("p", { class: "back" }, h("a", { href: "#/outbox" }, "Outbox")),
    h("div", { class: "heading top" },
      h("h1", { class: "wrap" }, h("span", { class: "method" }, one.method), " ", path(one.url)), tag(one.state, tones[one.state])),
    h("section", { class: "card why-card", "aria-label": "Why it is where it is" },
      h("p", { class: "lead" }, sentence(one)),
      one.blockedBy ? h("p", {}, "Before it: ", link(one.blockedBy.id ?? one.blockedBy)) : null,
      one.conflict ? h("p", {}, h("a", { class: "button primary", href: `#/conflicts/${one.conflict}` }, "Resolve the conflict")) : null,
      one.purgeAt ? h("p", { class: "quiet small" }, "It is kept until ", moment(one.purgeAt), ".") : null,
      actions(one, pool)),
    h("div", { class: "halves" },
      h("section", { "aria-labelledby": "attempts" }, h("h2", { id: "attempts" }, "Attempts"), timeline(one)),
      h("section", { "aria-labelledby": "facts" }, h("h2", { id: "facts" }, "What is known"), facts(one))),
    h("section", { "aria-labelledby": "request" }, h("h2", { id: "request" }, "Request"), message(one.headers, one.body, one.bodyBytes)),
    one.result ? h("section", { "aria-labelledby": "result" }, h("h2", { id: "result" }, `Answer ${one.result.status}`),
      message(one.result.headers, one.result.body)) : null,
  ],
};

function sentence(one) {
  const words = one.waiting ?? ended(one);
  return words ? words[0].toUpperCase() + words.slice(1) + "." : `It is ${one.state}.`;
}

const link = (id) => h("a", { class: "mono", href: `#/outbox/${id}` }, String(id).slice(-12));

function actions(one, pool) {
  const offer = (name, words, act, tone = "") => can[name].includes(one.state) ? h("button", { class: `button ${tone}`, onclick: act }, words) : null;
  const base = `/v1/operations/${one.id}`;
  return h("div", { class: "actions" },
    offer("retry", "Retry now", () => steer(pool, "POST", `${base}/retry`, "It is tried again.")),
    offer("edit", "Edit", () => edit(one, pool)),
    offer("cancel", "Cancel", async () => {
      if (await confirm("Cancel this write?", "It will not be sent. What was sent already cannot be taken back.", "Cancel the write")) {
        steer(pool, "POST", `${base}/cancel`, "Cancelled.");
      }
    }),
    offer("discard", "Discard", () => discard(one, pool), "bad"));
}

async function steer(pool, method, target, done) {
  try {
    const answer = await change(method, target);
    if (answer) pool.say(answer.warning ?? done);
    pool.refresh();
    return Boolean(answer);
  } catch (problem) {
    pool.say(problem.message, "bad");
    pool.refresh();
    return false;
  }
}

/** What needs it goes with it only when that is said: the server refuses otherwise, and tells what that would be. */
async function discard(one, pool) {
  if (!(await confirm("Discard this write?", "It ends here, readable for a while and never sent. Its client is not told.", "Discard it"))) return;
  try {
    if (await change("DELETE", `/v1/operations/${one.id}`)) pool.say("Discarded.");
  } catch (problem) {
    if (problem.status !== 409) return pool.say(problem.message, "bad");
    if (await confirm("Others need it", `${problem.message} Discard all of them?`, "Discard all of them")) {
      await steer(pool, "DELETE", `/v1/operations/${one.id}?tree=true`, "Discarded, with what needed it.");
    }
  }
  pool.refresh();
}

async function edit(one, pool) {
  const isText = one.body !== null && one.body !== undefined;
  const wish = await dialog("Edit this write", [
    h("p", { class: "quiet" }, "A new one takes its place in the lane, under a new key; this one ends as superseded."),
    h("label", { for: "edit-method" }, "Method"),
    h("select", { id: "edit-method" }, ["POST", "PUT", "PATCH", "DELETE"].map((name) => h("option", { selected: name === one.method }, name))),
    h("label", { for: "edit-url" }, "URL"), h("input", { id: "edit-url", value: one.url, spellcheck: "false" }),
    h("label", { for: "edit-body" }, "Body"),
    h("textarea", { id: "edit-body", rows: 10, spellcheck: "false" }, isText ? pretty(one.body) : ""),
  ], {
    action: "Replace it",
    read: (form) => {
      const [method, url, body] = ["#edit-method", "#edit-url", "#edit-body"].map((name) => form.querySelector(name).value);
      const wish = {};
      if (method !== one.method) wish.method = method;
      if (url !== one.url) wish.url = url;
      if (body !== (isText ? pretty(one.body) : "")) {
        try { wish.body = JSON.parse(body); } catch { wish.bodyBase64 = base64(body); }
      }
      return wish;
    },
  });
  if (!wish || Object.keys(wish).length === 0) return;
  try {
    const replaced = await change("PATCH", `/v1/operations/${one.id}`, wish);
    if (replaced) { pool.say("Replaced."); pool.go(`/outbox/${replaced.id}`); }
  } catch (problem) {
    pool.say(problem.message, "bad");
  }
}

const base64 = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));

function timeline(one) {
  const steps = (one.attemptLog ?? []).map((attempt) => h("li", { class: attempt.status && attempt.status < 400 ? "good" : "bad", "data-key": attempt.number },
    h("p", {}, h("b", {}, attempt.status ? `Answered ${attempt.status}` : attempt.error ?? "Under way"), " ", h("span", { class: "quiet" }, clock(attempt.startedAt))),
    h("p", { class: "quiet small" }, `attempt ${attempt.number}`,
      attempt.endedAt ? ` · ${new Date(attempt.endedAt) - new Date(attempt.startedAt)} ms` : "",
      attempt.sent ? ` · sent: ${attempt.sent}` : "", attempt.bytesSent ? ` · ${bytes(attempt.bytesSent)}` : "", attempt.freshConnection ? " · new connection" : "")));
  return h("ol", { class: "timeline" },
    h("li", { class: "sea", "data-key": "taken" }, h("p", {}, h("b", {}, "Taken, on disk"), " ", h("span", { class: "quiet" }, clock(one.acceptedAt))),
      h("p", { class: "quiet small" }, moment(one.acceptedAt))),
    steps,
    one.endedAt ? h("li", { class: tones[one.state] ?? "", "data-key": "end" }, h("p", {}, h("b", {}, one.state), " ", h("span", { class: "quiet" }, clock(one.endedAt))))
      : one.nextAttemptAt ? h("li", { class: "next", "data-key": "next" }, h("p", {}, h("b", {}, one.state === "conflicted" ? "Waits for you" : "Next attempt"), " ",
        h("span", { class: "quiet" }, new Date(one.nextAttemptAt) > new Date() ? moment(one.nextAttemptAt) : "as soon as it can"))) : null);
}

function facts(one) {
  const rows = [["Upstream", one.upstream], ["Entity", one.entity], ["Lane", one.lane], ["Priority", one.priority ? number(one.priority) : null],
    ["Key", one.idempotencyKey], ["Local id", one.localId], ["Id at the upstream", one.serverId], ["Last error", one.lastError],
    ["Needs", one.dependsOn?.length ? one.dependsOn.map((id) => [link(id), " "]) : null],
    ["Replaced by", one.supersededBy ? link(one.supersededBy) : null], ["Fixes", one.fixes ? link(one.fixes) : null], ["Id", one.id]];
  return h("dl", { class: "facts" }, rows.filter(([, value]) => value).map(([name, value]) => [h("dt", {}, name), h("dd", { class: "mono wrap" }, value)]));
}

function message(headers, body, length) {
  return [
    h("pre", { tabindex: 0, "aria-label": "Headers" }, Object.entries(headers ?? {}).map(([name, value]) => `${name}: ${value}\n`).join("")),
    body === null || body === undefined ? h("p", { class: "quiet small" }, length ? `A body of ${bytes(length)} that is not shown.` : "No body.")
      : h("pre", { tabindex: 0, "aria-label": "Body" }, pretty(body))];
}
