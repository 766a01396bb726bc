// One entity: its stored copy, its open conflicts, and every write to it in order.
import { h, bytes, clock, count, empty, moment, path, principal, tag } from "./dom.js";
import { get, query } from "./api.js";
import { everyRow } from "./paging.js";
import { reasonOf, tones } from "./outbox.js";

/** The address of the view of an operation's entity; null if it has none. */
export const entityLink = (one) => (one.entity ? `#${query("/entity", { upstream: one.upstream, entity: one.entity, lane: one.lane, url: one.url })}` : null);

export const entity = {
  topics: ["operation", "conflict", "storage"],
  title: (found) => found.entity,
  async load(at) {
    const [upstream, entity, lane, url] = ["upstream", "entity", "lane", "url"].map((name) => at.search.get(name) ?? "");
    // A create is sent to the collection; its entity is the path below it.
    const origin = url.slice(0, url.length - path(url).length);
    const [writes, conflicts, stored] = await Promise.all([
      everyRow((offset) => get(query("/v1/operations", { state: "all", upstream, lane, limit: 1000, offset, count: true }))).catch(missing([])),
      get(query("/v1/conflicts", { state: "all", upstream, entity })).catch(missing({ items: [] })),
      get(query("/v1/cache/entry", { url: origin + entity })).catch(missing(null))]);
    return { upstream, entity, address: origin + entity, writes: writes.filter((one) => one.entity === entity), conflicts: conflicts.items, stored };
  },
  view: ({ upstream, entity, address, writes, conflicts, stored }) => {
    const open = conflicts.filter((one) => !one.closedAt);
    return [
      h("p", { class: "back" }, h("a", { href: "#/outbox" }, "Outbox")),
      h("div", { class: "heading top" }, h("h1", { class: "wrap" }, entity), open.length ? tag(count(open.length, "open conflict"), "warn") : null),
      h("p", { class: "mono small wrap quiet" }, `${upstream} · ${address}`),
      h("section", { class: "card", "aria-labelledby": "copy" }, h("h2", { id: "copy" }, "Stored copy"),
        stored ? [h("p", {}, `${count(stored.variants.length, "variant")}, the newest stored `, moment(stored.variants[0]?.storedAt), `, ${bytes(stored.variants[0]?.bytes ?? 0)}.`),
          h("p", {}, h("a", { class: "button", href: `#${query("/cache/entry", { url: address })}` }, "Show it, and what a request would get"))]
          : h("p", { class: "quiet" }, "No copy is stored: a read goes to the upstream.")),
      conflicts.length ? h("section", { "aria-labelledby": "conflicts" }, h("h2", { id: "conflicts" }, "Conflicts"),
        h("ul", { class: "operations" }, conflicts.map((one) => h("li", { "data-key": one.id }, h("a", { class: "operation", href: `#/conflicts/${one.id}` },
          h("span", { class: "operation-name" }, one.kind), tag(one.closedAt ? one.resolution ?? "closed" : "open", one.closedAt ? "good" : "warn"),
          h("span", { class: "quiet small" }, moment(one.closedAt ?? one.openedAt))))))) : null,
      h("section", { "aria-labelledby": "history" }, h("h2", { id: "history" }, "History of its writes"),
        writes.length === 0 ? empty("No write is kept", "Writes that ended are kept for a while and then removed.") : h("ol", { class: "timeline" }, writes.map((one) =>
          h("li", { class: tones[one.state] ?? "", "data-key": one.id },
            h("p", {}, h("a", { href: `#/outbox/${one.id}` }, h("b", {}, one.method), " ", path(one.url)), " ", tag(one.state, tones[one.state])),
            h("p", { class: "quiet small" }, `${clock(one.acceptedAt)} · `, reasonOf(one), one.client ? [" · by ", principal(one.client)] : null))))),
    ];
  },
};

const missing = (value) => (problem) => { if (problem.status === 404) return value; throw problem; };
