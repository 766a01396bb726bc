// The outbox: queued writes with their states and attempts, and the actions on them.
import { h, number, count, bytes, choice, moment, clock, path, pretty, principal, tag, empty } from "./dom.js";
import { get, change, confirm, dialog, query } from "./api.js";
import { entityLink } from "./entity.js";
import { Selection, everyRow, pager, place } from "./paging.js";
import { push } from "./overview.js";

const filters = [["", "Open"], ["pending,inflight", "Pending"], ["conflicted", "In conflict"], ["dead,parked,uncertain", "Needs attention"],
  ["delivered,cancelled,superseded", "Finished"], ["all", "All"]];
export const tones = { delivered: "good", dead: "bad", conflicted: "warn", uncertain: "warn", parked: "warn", inflight: "sea", pending: "sea" };
const members = ["path", "method", "upstream", "olderThanSeconds"];
const ages = [["3600", "1 hour"], ["86400", "1 day"], ["604800", "1 week"]];
const selection = new Selection();

export const outbox = {
  topics: ["operation", "conflict"],
  title: () => "Outbox",
  async load(at, pool) {
    const state = at.search.get("state") ?? "";
    const wish = Object.fromEntries(members.map((name) => [name, at.search.get(name) ?? ""]));
    const { page, ...range } = place(at);
    selection.attend(JSON.stringify([state, wish]));
    const list = await get(query("/v1/operations", { ...wish, state, ...range })).catch(none);
    return { state, wish, page, list, upstreams: (pool.status?.upstreams ?? []).map((one) => one.name) };
  },
  view: ({ state, wish, page, list, upstreams }, pool) => {
    const rows = list.items.map((row) => ({ ...row, key: row.id })), isFiltered = members.some((name) => wish[name]);
    const to = (value) => `#${query("/outbox", { ...wish, state: value })}`;
    return [
      h("div", { class: "heading top" }, h("h1", {}, "Outbox"),
        h("button", { class: "button primary", onclick: () => push(pool) }, "Sync now")),
      h("nav", { class: "filters", "aria-label": "Which writes" }, filters.map(([value, name]) =>
        h("a", { href: to(value), "aria-current": value === state ? "true" : null }, name))),
      h("form", { class: "search", role: "search", onsubmit: (event) => search(event, state, pool) },
        h("div", { class: "grow" }, h("label", { for: "path" }, "Path contains"), h("input", { id: "path", type: "search", value: wish.path, spellcheck: "false", placeholder: "/v1/notes" })),
        choice("method", "Method", ["POST", "PUT", "PATCH", "DELETE"], wish), choice("upstream", "Upstream", upstreams, wish),
        choice("olderThanSeconds", "Older than", ages, wish),
        h("button", { class: "button" }, "Search"), isFiltered ? h("a", { class: "button", href: `#${query("/outbox", { state })}` }, "Show all") : null),
      selection.bar([
        h("button", { class: "button", onclick: () => many("retry", pool) }, "Retry"),
        h("button", { class: "button bad", onclick: () => many("discard", pool) }, "Discard"),
      ], { total: list.total, pool, everything: async () => (await everyRow((offset) => get(query("/v1/operations", { ...wish, state, limit: 1000, offset, count: true })))).map((row) => ({ ...row, key: row.id })) }),
      rows.length === 0 ? nothing(state, isFiltered) : [
        h("div", { class: "picks" }, selection.all(rows, pool), h("span", { class: "quiet small" }, `${count(list.total, "write")}${isFiltered ? " match" : ""}`)),
        h("ul", { class: "operations" }, rows.map((one) => row(one, pool)))],
      pager("/outbox", { ...wish, state }, page, list.total, pool),
    ];
  },
};

/** An upstream that is declared no longer has no rows. */
const none = (problem) => { if (problem.status === 404) return { items: [], total: 0 }; throw problem; };

function search(event, state, pool) {
  event.preventDefault();
  const form = event.currentTarget;
  pool.go(query("/outbox", { state, ...Object.fromEntries(members.map((name) => [name, form.querySelector(`#${name}`).value.trim()])) }));
}

/** Retries or discards the chosen writes that allow it, after a question. */
async function many(command, pool) {
  const size = selection.chosen.size;
  const words = command === "retry" ? ["Retry", "They are sent as soon as their upstream is there.", "Retried"]
    : ["Discard", "They are cancelled: they will never be sent, and stay readable for a while. Their clients are not notified.", "Discarded"];
  if (!(await confirm(`${words[0]} ${count(size, "write")}?`, words[1], `${words[0]} ${number(size)}`, command === "retry" ? "" : "bad"))) return;
  await selection.each((one) => command === "retry" ? change("POST", `/v1/operations/${one.id}/retry`) : change("DELETE", `/v1/operations/${one.id}`), words[2], pool);
}

const nothing = (state, isFiltered) => state === "" && !isFiltered
  ? empty("Nothing waits", "Every accepted write has been delivered. A write that cannot be sent appears here automatically.")
  : empty("No write matches", h("a", { href: "#/outbox?state=all" }, "Show all writes"));

const row = (one, pool) => h("li", { "data-key": one.id, "data-state": one.state, class: "picked" },
  selection.box(one, `${one.method} ${path(one.url)}`, pool),
  h("a", { class: "operation", href: `#/outbox/${one.id}` },
    h("span", { class: "operation-name" }, h("b", { class: "method" }, one.method), " ", h("span", { class: "mono wrap" }, path(one.url))),
    tag(one.state, tones[one.state]),
    h("span", { class: "why" }, reasonOf(one)),
    h("span", { class: "quiet small" }, one.upstream, " · accepted ", moment(one.acceptedAt), one.attempts ? ` · ${count(one.attempts, "attempt")}` : "",
      one.bodyBytes ? ` · ${bytes(one.bodyBytes)}` : "", one.client ? [" · by ", principal(one.client)] : null)));

/** Why a write is where it is, in words. */
export const reasonOf = (one) => one.waiting ?? ended(one);

function ended(one) {
  if (one.state === "delivered") return one.serverId ? `created upstream as ${one.serverId}` : `answered ${one.result?.status ?? ""}`.trim();
  if (one.state === "superseded") return "replaced by another write";
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
    h("section", { class: "card why-card", "aria-label": "Current state" },
      h("p", { class: "lead" }, sentence(one)),
      one.blockedBy ? h("p", {}, "Blocked by: ", link(one.blockedBy.id ?? one.blockedBy)) : null,
      one.conflict ? h("p", {}, h("a", { class: "button primary", href: `#/conflicts/${one.conflict}` }, "Resolve the conflict")) : null,
      one.purgeAt ? h("p", { class: "quiet small" }, "Kept until ", moment(one.purgeAt), ".") : null,
      actions(one, pool)),
    h("div", { class: "halves" },
      h("section", { "aria-labelledby": "attempts" }, h("h2", { id: "attempts" }, "Attempts"), timeline(one)),
      h("section", { "aria-labelledby": "facts" }, h("h2", { id: "facts" }, "Details"), facts(one))),
    h("section", { "aria-labelledby": "request" }, h("h2", { id: "request" }, "Request"), message(one.headers, one.body, one.bodyBytes)),
    one.result ? h("section", { "aria-labelledby": "result" }, h("h2", { id: "result" }, `Response ${one.result.status}`),
      message(one.result.headers, one.result.body)) : null,
  ],
};

function sentence(one) {
  const words = reasonOf(one);
  return words ? words[0].toUpperCase() + words.slice(1) + "." : `State: ${one.state}.`;
}

const link = (id) => h("a", { class: "mono", href: `#/outbox/${id}` }, String(id).slice(-12));

function actions(one, pool) {
  const offer = (name, words, act, tone = "") => one.commands.includes(name) ? h("button", { class: `button ${tone}`, onclick: act }, words) : null;
  const base = `/v1/operations/${one.id}`;
  return h("div", { class: "actions" },
    offer("retry", "Retry now", () => steer(pool, "POST", `${base}/retry`, "The write will be retried.")),
    offer("edit", "Edit", () => edit(one, pool)),
    offer("cancel", "Cancel", async () => {
      if (await confirm("Cancel this write?", "The write will not be sent. An attempt that was already sent cannot be undone.", "Cancel the write")) {
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

/** Discards a write. If others depend on it, the server refuses and lists them; they are discarded only after a confirmation. */
async function discard(one, pool) {
  if (!(await confirm("Discard this write?", "The write is cancelled: it will never be sent, and stays readable for a while. Its client is not notified.", "Discard the write"))) return;
  try {
    if (await change("DELETE", `/v1/operations/${one.id}`)) pool.say("Discarded.");
  } catch (problem) {
    if (problem.status !== 409) return pool.say(problem.message, "bad");
    if (await confirm("Other writes depend on it", `${problem.message} Discard all of them?`, "Discard all of them")) {
      await steer(pool, "DELETE", `/v1/operations/${one.id}?tree=true`, "Discarded, with its dependants.");
    }
  }
  pool.refresh();
}

async function edit(one, pool) {
  const isText = one.body !== null && one.body !== undefined;
  const wish = await dialog("Edit this write", [
    h("p", { class: "quiet" }, "A new write takes its place in the lane, with a new idempotency key; this one becomes superseded."),
    h("label", { for: "edit-method" }, "Method"),
    h("select", { id: "edit-method" }, ["POST", "PUT", "PATCH", "DELETE"].map((name) => h("option", { selected: name === one.method }, name))),
    h("label", { for: "edit-url" }, "URL"), h("input", { id: "edit-url", value: one.url, spellcheck: "false" }),
    h("label", { for: "edit-body" }, "Body"),
    h("textarea", { id: "edit-body", rows: 10, spellcheck: "false" }, isText ? pretty(one.body) : ""),
  ], {
    action: "Replace",
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
    h("p", {}, h("b", {}, attempt.status ? `Answered ${attempt.status}` : attempt.error ?? "In progress"), " ", h("span", { class: "quiet" }, clock(attempt.startedAt))),
    h("p", { class: "quiet small" }, `attempt ${attempt.number}`,
      attempt.endedAt ? ` · ${new Date(attempt.endedAt) - new Date(attempt.startedAt)} ms` : "",
      attempt.sent ? ` · sent: ${attempt.sent}` : "", attempt.bytesSent ? ` · ${bytes(attempt.bytesSent)}` : "", attempt.freshConnection ? " · new connection" : "")));
  return h("ol", { class: "timeline" },
    h("li", { class: "sea", "data-key": "taken" }, h("p", {}, h("b", {}, "Accepted, on disk"), " ", h("span", { class: "quiet" }, clock(one.acceptedAt))),
      h("p", { class: "quiet small" }, moment(one.acceptedAt))),
    steps,
    one.endedAt ? h("li", { class: tones[one.state] ?? "", "data-key": "end" }, h("p", {}, h("b", {}, one.state), " ", h("span", { class: "quiet" }, clock(one.endedAt))))
      : one.nextAttemptAt ? h("li", { class: "next", "data-key": "next" }, h("p", {}, h("b", {}, one.state === "conflicted" ? "Waits for your decision" : "Next attempt"), " ",
        h("span", { class: "quiet" }, new Date(one.nextAttemptAt) > new Date() ? moment(one.nextAttemptAt) : "as soon as possible"))) : null);
}

function facts(one) {
  const rows = [["Upstream", one.upstream], ["Entity", one.entity ? h("a", { href: entityLink(one) }, one.entity, " (history)") : null], ["Sent by", one.client], ["Lane", one.lane], ["Priority", one.priority ? number(one.priority) : null],
    ["Idempotency key", one.idempotencyKey], ["Local id", one.localId], ["Upstream id", one.serverId], ["Last error", one.lastError],
    ["Depends on", one.dependsOn?.length ? one.dependsOn.map((id) => [link(id), " "]) : null],
    ["Replaced by", one.supersededBy ? link(one.supersededBy) : null], ["Replaces", one.fixes ? link(one.fixes) : null], ["Id", one.id]];
  return h("dl", { class: "facts" }, rows.filter(([, value]) => value).map(([name, value]) => [h("dt", {}, name), h("dd", { class: "mono wrap" }, value)]));
}

function message(headers, body, length) {
  return [
    h("pre", { tabindex: 0, "aria-label": "Headers" }, Object.entries(headers ?? {}).map(([name, value]) => `${name}: ${value}\n`).join("")),
    body === null || body === undefined ? h("p", { class: "quiet small" }, length ? `Body of ${bytes(length)}, not shown.` : "No body.")
      : h("pre", { tabindex: 0, "aria-label": "Body" }, pretty(body))];
}
