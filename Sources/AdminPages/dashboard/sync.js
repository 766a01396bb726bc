// The state of each resource, and the log of writes, newest first.
import { h, number, moment, path, table, empty, tag } from "./dom.js";
import { get, change, query } from "./api.js";
import { push } from "./overview.js";

export const sync = {
  topics: ["operation", "conflict", "reachability"],
  title: () => "Sync",
  async load(at) {
    const [entities, log] = await Promise.all([get("/v1/entities?limit=1000"), get(query("/v1/sync/log", { limit: 200, cursor: at.search.get("cursor") }))]);
    return { entities: entities.items, log };
  },
  view: ({ entities, log }, pool) => [
    h("div", { class: "heading top" }, h("h1", {}, "Sync"),
      h("div", { class: "actions" },
        h("button", { class: "button primary", onclick: () => push(pool) }, "Push writes"),
        h("button", { class: "button", onclick: () => pull(pool) }, "Pull changes"))),
    h("section", { "aria-labelledby": "entities" }, h("h2", { id: "entities" }, "Resources"),
      entities.length === 0
        ? empty("No resource is declared", "Declare one under ", h("code", {}, "resources"), " to enable local ids, folded reads, merging and delta sync.")
        : table("Declared resources and their state", [
          { name: "Resource", cell: (row) => h("span", { class: "mono" }, row.resource) },
          { name: "Upstream", cell: (row) => row.upstream },
          { name: "Cached", class: "figure", cell: (row) => number(row.cached) },
          { name: "Upstream has", class: "figure", cell: (row) => (row.serverCount === null ? "unknown" : number(row.serverCount)) },
          { name: "Pending", class: "figure", cell: (row) => number(row.pending) },
          { name: "Conflicts", class: "figure", cell: (row) => number(row.conflicts) },
          { name: "Last pull", cell: (row) => moment(row.lastSync) },
          { name: "Differing", cell: (row) => Object.entries(row.states ?? {}).filter(([, count]) => count > 0).map(([state, count]) => `${count} ${state}`).join(", ") },
        ], entities.map((row) => ({ ...row, key: `${row.upstream}${row.resource}` })))),
    entities.length === 0 ? null : h("section", { "aria-labelledby": "strategies" }, h("h2", { id: "strategies" }, "Conflict strategies"),
      table("How conflicts are decided, by resource and field", [
        { name: "Resource", cell: (row) => h("span", { class: "mono" }, row.resource) },
        { name: "Field", cell: (row) => (row.pointer ? h("span", { class: "mono" }, row.pointer) : "all others") },
        { name: "Strategy", cell: (row) => row.strategy },
      ], entities.flatMap((row) => [...(row.fields ?? []).map((field) => ({ ...field, resource: row.resource })), { resource: row.resource, strategy: row.strategy }]
        .map((one) => ({ ...one, key: `${row.upstream}${row.resource}${one.pointer ?? ""}` }))))),
    h("section", { "aria-labelledby": "log" }, h("h2", { id: "log" }, "Log"),
      log.items.length === 0
        ? empty("No events yet", "Every step of every queued write is recorded here.")
        : table("Steps of queued writes, newest first", [
          { name: "When", cell: (row) => moment(row.at) },
          { name: "Event", cell: (row) => tag(row.event) },
          { name: "Write", cell: (row) => (row.url ? [h("span", { class: "method" }, row.method), " ", h("span", { class: "mono wrap" }, path(row.url))] : "") },
          { name: "Device", cell: (row) => [row.userAgent, row.client].filter(Boolean).join(" ") },
          { name: "Detail", cell: (row) => row.detail ?? "" },
          { name: "Operation", cell: (row) => (row.operation ? h("a", { class: "mono", href: `#/outbox/${row.operation}` }, row.operation.slice(-12)) : "") },
        ], log.items.map((row) => ({ ...row, key: `${row.at}${row.event}${row.operation}` }))),
      log.next ? h("p", {}, h("a", { class: "button", href: `#/sync?cursor=${encodeURIComponent(log.next)}` }, "Older")) : null),
  ],
};

async function pull(pool) {
  try {
    const report = await change("POST", "/v1/sync/pull");
    if (!report) return;
    const [changed, gone] = ["changed", "gone"].map((name) => report.items.reduce((sum, one) => sum + one[name], 0));
    const failed = report.items.find((one) => one.error);
    if (report.items.length === 0) pool.say("No resource has a delta query: declare `delta` for one.");
    else pool.say(failed ? `${path(failed.resource)}: ${failed.error}` : `${changed} changed, ${gone} deleted.`, failed ? "bad" : "");
  } catch (problem) {
    pool.say(problem.message, "bad");
  }
  pool.refresh();
}
