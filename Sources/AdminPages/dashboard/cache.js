// The cache: lists, explains, purges and pins stored responses.
import { h, bytes, choice, count, host, moment, path, percent, principal, table, tag, empty, span, number } from "./dom.js";
import { get, change, confirm, query } from "./api.js";
import { meanings } from "./overview.js";
import { Selection, everyRow, pager, place } from "./paging.js";

const members = ["path", "prefix", "category", "status", "stale", "pinned", "sort"];
const statuses = ["2xx", "3xx", "4xx", "5xx"];
const orders = [["size", "Largest first"], ["age", "Oldest first"], ["hits", "Most read first"]];
const selection = new Selection();

export const cache = {
  topics: ["storage"],
  title: () => "Cache",
  async load(at, pool) {
    const wish = Object.fromEntries(members.map((name) => [name, at.search.get(name) ?? ""]));
    const { page, ...range } = place(at);
    selection.attend(JSON.stringify(wish));
    const [list, storage] = await Promise.all([
      get(query("/v1/cache", { ...wish, ...range })).catch((problem) => { if (problem.status === 404) return { items: [], total: 0 }; throw problem; }), get("/v1/storage")]);
    const origins = (pool.status?.upstreams ?? []).map((one) => [`${one.origin}/`, one.name]);
    return { wish, page, list, origins, categories: Object.keys(storage.cache.byCategory).sort() };
  },
  view: ({ wish, page, list, origins, categories }, pool) => {
    const rows = list.items.map((row) => ({ ...row, key: `${row.method} ${row.url} ${row.principal ?? ""} ${row.storedAt}` }));
    const isFiltered = members.some((name) => name !== "sort" && wish[name]);
    const hosts = origins.some(([value]) => value === wish.prefix) || !wish.prefix ? origins : [...origins, [wish.prefix, wish.prefix]];
    return [
      h("h1", {}, "Cache"),
      h("form", { class: "search", role: "search", onsubmit: (event) => search(event, pool) },
        h("div", { class: "grow" }, h("label", { for: "path" }, "URL contains, or begins with"),
          h("input", { id: "path", type: "search", value: wish.path, placeholder: "/v1/notes or https://api.example.com/v1/", spellcheck: "false" })),
        choice("prefix", "Upstream", hosts, wish), choice("category", "Category", categories, wish),
        choice("status", "Status", statuses, wish), choice("stale", "Fresh", [["false", "fresh"], ["true", "stale"]], wish),
        choice("pinned", "Pinned", [["true", "pinned"], ["false", "not pinned"]], wish), choice("sort", "Order", orders, wish),
        h("button", { class: "button primary" }, "Search"), isFiltered ? h("a", { class: "button", href: "#/cache" }, "Show all") : null,
        (wish.prefix || wish.category) && !["path", "status", "stale", "pinned"].some((name) => wish[name]) ? h("button", { class: "button bad", type: "button",
          onclick: () => purge({ prefix: wish.prefix, category: wish.category }, [wish.prefix, wish.category].filter(Boolean).join(", "), pool) }, "Purge all of these") : null),
      selection.bar([
        h("button", { class: "button", onclick: () => selection.each((row) => change("PUT", query("/v1/cache/pins", { url: row.url })), "Pinned", pool) }, "Pin"),
        h("button", { class: "button", onclick: () => selection.each((row) => change("DELETE", query("/v1/cache/pins", { url: row.url })), "Unpinned", pool) }, "Unpin"),
        h("button", { class: "button bad", onclick: () => purgeChosen(pool) }, "Purge"),
      ], { total: list.total, pool, everything: async () => (await everyRow((offset) => get(query("/v1/cache", { ...wish, limit: 1000, offset, count: true }))))
        .map((row) => ({ ...row, key: `${row.method} ${row.url} ${row.principal ?? ""} ${row.storedAt}` })) }),
      rows.length === 0
        ? empty(isFiltered ? "No stored response matches" : "The cache is empty", isFiltered ? h("a", { href: "#/cache" }, "Show all stored responses") : "Responses fetched through the proxy appear here.")
        : table("Stored responses", [
          { name: "Select", head: selection.all(rows, pool), class: "choose", cell: (row) => selection.box(row, path(row.url), pool) },
          { name: "URL", class: "wide", cell: (row) => [h("a", { class: "mono wrap", href: `#/cache/entry?url=${encodeURIComponent(row.url)}`, title: row.url },
            row.method === "GET" ? null : h("b", {}, `${row.method} `), path(row.url)), h("span", { class: "under quiet small" }, host(row.url), row.variants > 1 ? ` · ${row.variants} variants` : "")] },
          { name: "Status", class: "figure", cell: (row) => row.status },
          { name: "Category", cell: (row) => row.category },
          { name: "Size", class: "figure", cell: (row) => bytes(row.bytes) },
          { name: "Hits", class: "figure", cell: (row) => number(row.hits) },
          { name: "Fresh", cell: (row) => (new Date(row.freshUntil) > new Date() ? tag(`for ${span((new Date(row.freshUntil) - Date.now()) / 1000)}`, "good") : tag("stale")) },
          { name: "Served offline", cell: (row) => (!row.offline ? tag("no", "warn") : row.offlineUntil === null ? tag("yes", "good")
            : h("span", { title: new Date(row.offlineUntil).toLocaleString() }, tag(`for ${span((new Date(row.offlineUntil) - Date.now()) / 1000)}`, "good"))) },
          { name: "Last used", cell: (row) => moment(row.lastUsedAt) },
          { name: "Of", cell: (row) => [row.principal ? principal(row.principal) : "shared", row.pinned ? [" ", tag("pinned", "sea")] : null] },
        ], rows),
      pager("/cache", wish, page, list.total, pool),
    ];
  },
};

function search(event, pool) {
  event.preventDefault();
  const wish = Object.fromEntries(members.map((name) => [name, event.currentTarget.querySelector(`#${name}`).value.trim()]));
  // A whole beginning is found by the index of URLs.
  if (/^https?:\/\//.test(wish.path)) Object.assign(wish, { prefix: wish.path, path: "" });
  pool.go(query("/cache", wish));
}

async function purgeChosen(pool) {
  const size = selection.chosen.size;
  if (!(await confirm(`Purge ${count(size, "response")}?`, "They are fetched again on the next request if the upstream is reachable.", `Purge ${number(size)}`))) return;
  await selection.each((row) => change("DELETE", query("/v1/cache", { url: row.url })), "Purged", pool);
}

/** Purges after a dry run and a confirmation. */
async function purge(selector, words, pool) {
  try {
    const first = await change("DELETE", query("/v1/cache", { ...selector, dryRun: true }));
    if (!first) return false;
    if (first.entries === 0) { pool.say("Nothing matches."); return false; }
    if (!(await confirm("Purge from the cache?", `${count(first.entries, "entry", "entries")}, ${bytes(first.bytes)}: ${words}. They are fetched again on the next request if the upstream is reachable.`, "Purge"))) return false;
    const done = await change("DELETE", query("/v1/cache", selector));
    if (done) pool.say(`${count(done.entries, "entry", "entries")} purged, ${bytes(done.bytes)} freed.`);
    pool.refresh();
    return Boolean(done);
  } catch (problem) {
    pool.say(problem.message, "bad");
    return false;
  }
}

const decisions = { fresh: "Served from the cache", stale: "Served stale from the cache", validate: "Revalidated with the upstream",
  miss: "Fetched from the upstream", none: "Fetched from the upstream" };

const lastEvents = { stored: "A response was stored", replaced: "A response replaced the previous one", "not-stored": "The last response was not stored",
  evicted: "The entry was evicted to free space", purged: "The entry was purged", "cleaned-up": "The entry was removed by a cleanup" };

export const entry = {
  topics: ["storage"],
  title: (found) => path(found.url),
  async load(at) {
    const url = at.search.get("url") ?? "";
    const [stored, told] = await Promise.all([
      get(query("/v1/cache/entry", { url })).catch((problem) => { if (problem.status === 404) return null; throw problem; }),
      get(query("/v1/cache/explain", { url }))]);
    return { url, stored, told };
  },
  view: ({ url, stored, told }, pool) => [
    h("p", { class: "back" }, h("a", { href: "#/cache" }, "Cache")),
    h("div", { class: "heading top" }, h("h1", { class: "wrap" }, path(url)), stored?.pinned ? tag("pinned", "sea") : null),
    h("p", { class: "mono small wrap quiet" }, url),
    stored === null ? empty("Nothing is stored for this URL", told.last ? "The last event is shown below." : "No event is recorded for it.") : h("div", { class: "actions" },
      h("button", { class: "button", onclick: () => pin(url, !stored.pinned, pool) }, stored.pinned ? "Unpin" : "Pin (never evict)"),
      h("button", { class: "button bad", onclick: async () => { if (await purge({ url }, path(url), pool)) pool.go("/cache"); } }, "Purge")),
    h("section", { class: "card", "aria-labelledby": "decision" }, h("h2", { id: "decision" }, "Decision for a request sent now"),
      h("p", { class: "lead" }, `${decisions[told.decision] ?? told.decision}: ${told.why ?? told.reason}.`),
      h("dl", { class: "facts" }, [["Decision", told.decision], ["Reason", told.reason], ["Strategy", told.strategy], ["Policy", told.policy],
        ["Category", told.category], ["Upstream", meanings[told.reachability] ?? told.reachability], ["Conditional fields", told.conditionals?.map((field) => `${field.name}: ${field.value}`).join(", ")]]
        .filter(([, text]) => text).map(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])),
      told.last ? h("p", { class: "quiet small" }, `${lastEvents[told.last.event] ?? told.last.event}${told.last.reason ? ` (${told.last.reason})` : ""} `, moment(told.last.at)) : null,
      told.lines?.length ? h("details", {}, h("summary", {}, "Freshness calculation"), h("pre", { tabindex: 0, "aria-label": "Freshness calculation" }, told.lines.join("\n"))) : null,
      h("details", {}, h("summary", {}, "Cache key"), h("pre", { tabindex: 0, "aria-label": "Cache key" }, told.key))),
    (stored?.variants ?? []).map((variant, index) => h("section", { "data-key": `variant-${index}`, "aria-label": `Variant ${index + 1}` },
      h("h2", {}, stored.variants.length > 1 ? `Variant ${index + 1} of ${number(stored.variants.length)}` : "Stored response"),
      life(variant),
      h("p", { class: "quiet small" }, `${variant.status} · ${bytes(variant.bytes)} · ${variant.category} · ${variant.identity} · stored `, moment(variant.storedAt)),
      h("pre", { tabindex: 0, "aria-label": "Fields" }, variant.fields.map((field) => `${field.name}: ${field.value}\n`).join("")))),
  ],
};

/** A bar for the share of the freshness lifetime that has passed. */
function life({ arithmetic, invalidated }) {
  if (!arithmetic) return null;
  const used = arithmetic.freshnessLifetime > 0 ? Math.min(1, arithmetic.currentAge / arithmetic.freshnessLifetime) : 1;
  const words = invalidated ? "invalidated by a write" : arithmetic.remaining > 0 ? `fresh for another ${span(arithmetic.remaining)}` : `stale for ${span(-arithmetic.remaining)}`;
  return h("div", { class: `gauge ${arithmetic.remaining > 0 && !invalidated ? "" : "warn"}` },
    h("p", { class: "gauge-name" }, h("span", {}, words), h("span", { class: "figures" }, `age ${span(arithmetic.currentAge)} of ${span(arithmetic.freshnessLifetime)}`)),
    h("div", { class: "bar", role: "img", "aria-label": `${percent(used)} of the freshness lifetime has passed` }, h("span", { class: "fill", style: { width: `${used * 100}%` } })));
}

async function pin(url, isWanted, pool) {
  try {
    const done = await change(isWanted ? "PUT" : "DELETE", query("/v1/cache/pins", { url }));
    if (done) pool.say(isWanted ? "Pinned." : "No longer pinned.");
  } catch (problem) {
    pool.say(problem.message, "bad");
  }
  pool.refresh();
}
