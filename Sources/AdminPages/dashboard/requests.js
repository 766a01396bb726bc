// The last requests: what came, how each was answered and why; one of them with its steps, timings and command.
import { h, bytes, choice, clock, count, host, milliseconds, moment, path, principal, table, tag, empty } from "./dom.js";
import { get, query } from "./api.js";
import { pager, place } from "./paging.js";

const verdicts = ["hit", "stale", "revalidated", "collapsed", "miss", "pass", "queued", "refused", "failed", "tunnel", "delivered", "dead", "conflicted", "uncertain", "parked"];
const tones = { hit: "good", revalidated: "good", collapsed: "good", delivered: "good", stale: "warn", queued: "sea", refused: "bad", failed: "bad",
  dead: "bad", conflicted: "warn", uncertain: "warn", parked: "warn" };
const members = ["path", "verdict", "status", "method", "upstream"];
/** The page that stays while the list is paused; null while it is live. */
let held = null;

export const requests = {
  topics: ["stats", "operation"],
  title: () => "Requests",
  async load(at, pool) {
    const wish = Object.fromEntries(members.map((name) => [name, at.search.get(name) ?? ""]));
    const { page: number, ...range } = place(at);
    if (held?.key === at.hash) return held.data;
    held = null;
    const page = await get(query("/v1/requests", { ...wish, ...range })).catch((problem) => {
      if (problem.status === 404) return { items: [], matching: 0, recorded: 0, total: 0 };
      throw problem;
    });
    return { wish, page, number, upstreams: (pool.status?.upstreams ?? []).map((one) => one.name), key: at.hash };
  },
  view: (data, pool) => {
    const { wish, page, number, upstreams } = data;
    const isFiltered = members.some((name) => wish[name]);
    return [
      h("div", { class: "heading top" }, h("h1", {}, "Requests"),
        h("div", { class: "actions" },
          h("button", { class: "button", "aria-pressed": held ? "true" : "false", onclick: () => pause(data, pool) }, held ? "Paused: continue" : "Pause"),
          h("a", { class: "button", href: query("/v1/requests", { ...wish, format: "har" }), download: "rockpool.har" }, "Save as HAR"))),
      h("form", { class: "search", role: "search", onsubmit: (event) => search(event, pool) },
        h("div", { class: "grow" }, h("label", { for: "path" }, "URL contains"), h("input", { id: "path", type: "search", value: wish.path, spellcheck: "false" })),
        choice("verdict", "Answered by", verdicts, wish),
        choice("status", "Status", ["2xx", "3xx", "4xx", "5xx"], wish),
        choice("method", "Method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"], wish),
        choice("upstream", "Upstream", upstreams, wish),
        h("button", { class: "button primary" }, "Search"),
        isFiltered ? h("a", { class: "button", href: "#/requests" }, "Show all") : null),
      h("p", { class: "quiet small" }, `${count(page.recorded, "request")} of ${page.total.toLocaleString("en")} recorded; `,
        held ? "paused." : "new ones appear by themselves."),
      page.items.length === 0
        ? empty(isFiltered ? "No recorded request matches" : "No requests yet", isFiltered ? h("a", { href: "#/requests" }, "Show all requests") : "Requests through the proxy appear here.")
        : table("Requests, the newest first", [
          { name: "Request", class: "wide", cell: (row) => [h("a", { class: "mono wrap", href: `#/requests/${row.id}`, title: row.url }, h("b", {}, `${row.method} `), path(row.url)), h("span", { class: "under quiet small" }, host(row.url))] },
          { name: "Status", class: "figure", cell: (row) => row.status || "–" },
          { name: "Answered by", cell: (row) => [tag(row.verdict, tones[row.verdict]), row.represents > 1 ? ` ×${row.represents}` : ""] },
          { name: "Why", class: "wide", cell: (row) => row.error ?? row.why },
          { name: "Size", class: "figure", cell: (row) => bytes(row.bytes) },
          { name: "Took", class: "figure", cell: (row) => milliseconds(row.seconds) },
          { name: "When", cell: (row) => h("time", { datetime: row.at, title: new Date(row.at).toLocaleString() }, clock(row.at)) },
        ], page.items.map((row) => ({ ...row, key: row.id }))),
      pager("/requests", wish, number, page.matching, pool),
    ];
  },
};

function search(event, pool) {
  event.preventDefault();
  held = null;
  const form = event.currentTarget;
  pool.go(query("/requests", Object.fromEntries(members.map((name) => [name, form.querySelector(`#${name}`).value.trim()]))));
}

function pause(data, pool) {
  held = held ? null : { key: data.key, data };
  pool.refresh();
}

export const request = {
  topics: [],
  title: (one) => `${one.method} ${path(one.url)}`,
  load: (at) => get(`/v1/requests/${encodeURIComponent(at.parts[0])}`),
  view: (one, pool) => [
    h("p", { class: "back" }, h("a", { href: "#/requests" }, "Requests")),
    h("div", { class: "heading top" },
      h("h1", { class: "wrap" }, h("span", { class: "method" }, one.method), " ", path(one.url)), tag(one.verdict, tones[one.verdict])),
    h("p", { class: "mono small wrap quiet" }, one.url),
    h("section", { class: "card why-card", "aria-label": "How it was answered" },
      h("p", { class: "lead" }, `${one.status || "No answer"}: ${one.why || one.verdict}.`),
      one.next ? h("p", {}, "Next: ", h("code", {}, one.next)) : null,
      h("div", { class: "actions" },
        one.operation ? h("a", { class: "button primary", href: `#/outbox/${one.operation}` }, "Open the queued write") : null,
        one.explain ? h("a", { class: "button", href: `#/cache/entry?url=${encodeURIComponent(one.url)}` }, "Explain a request sent now") : null)),
    h("div", { class: "halves" },
      h("section", { "aria-labelledby": "steps" }, h("h2", { id: "steps" }, "Steps"), steps(one)),
      h("section", { "aria-labelledby": "facts" }, h("h2", { id: "facts" }, "Details"), facts(one))),
    one.timings ? h("section", { "aria-labelledby": "timings" }, h("h2", { id: "timings" }, "Transfer from the upstream"), phases(one.timings)) : null,
    one.curl ? h("section", { "aria-labelledby": "curl" }, h("h2", { id: "curl" }, "Replay as curl"),
      h("pre", { tabindex: 0, "aria-label": "The request as a curl command" }, one.curl),
      h("p", {}, h("button", { class: "button", onclick: () => copy(one.curl, pool) }, "Copy the command"))) : null,
    fields("request-fields", "Request", one.requestHeaders),
    fields("response-fields", "Response", one.responseHeaders),
  ],
};

const steps = (one) => one.steps.length === 0 ? h("p", { class: "quiet" }, "No steps are recorded.")
  : h("ol", { class: "timeline" }, one.steps.map((step, index) => h("li", { class: step.step === "failed" || step.step === "refused" ? "bad" : "good", "data-key": index },
    h("p", {}, h("b", {}, step.step), " ", h("span", { class: "quiet" }, milliseconds(step.seconds))),
    step.detail ? h("p", { class: "quiet small wrap" }, step.detail) : null)));

function facts(one) {
  const rows = [["When", moment(one.at)], ["Status", one.status || null], ["Cache-Status", one.cacheStatus], ["Upstream", one.upstream], ["Category", one.category],
    ["Client", one.client ? principal(one.client) : null], ["Error", one.error], ["Size", bytes(one.bytes)], ["Until the head", milliseconds(one.headSeconds)], ["Until the end", milliseconds(one.seconds)],
    ["Stands for", one.represents > 1 ? count(one.represents, "request") : null], ["Id", one.id]];
  return h("dl", { class: "facts" }, rows.filter(([, value]) => value).map(([name, value]) => [h("dt", {}, name), h("dd", { class: "mono wrap" }, value)]));
}

const names = { queue: "Waited for a connection", dns: "Name", connect: "Connection", tls: "TLS", firstByte: "First byte", transfer: "Body" };

const phases = (timings) => h("dl", { class: "facts" }, Object.entries(names).map(([name, words]) =>
  [h("dt", {}, words), h("dd", { class: "mono" }, timings[name] === null ? "–" : milliseconds(timings[name]))]));

const fields = (id, words, list) => list?.length ? h("section", { "aria-labelledby": id }, h("h2", { id }, words),
  h("pre", { tabindex: 0, "aria-label": `Fields of the ${words.toLowerCase()}` }, list.map((field) => `${field.name}: ${field.value}\n`).join(""))) : null;

async function copy(text, pool) {
  try {
    await navigator.clipboard.writeText(text);
    pool.say("Copied.");
  } catch {
    pool.say("The browser does not allow it; select the command instead.", "bad");
  }
}
