// Storage usage and limits, and a cleanup with a preview.
import { h, bytes, count, moment, table, empty, number } from "./dom.js";
import { get, change } from "./api.js";
import { chart, gauge } from "./charts.js";
import { categories } from "./overview.js";

let report = null;
const wish = { aggressive: false, includesHeld: false, vacuum: false };

export const storage = {
  topics: ["storage", "stats"],
  title: () => "Storage",
  load: async () => {
    const [found, history] = await Promise.all([get("/v1/storage"), get("/v1/storage/history")]);
    return { ...found, history: history.items };
  },
  view: (found, pool) => [
    h("h1", {}, "Storage"),
    h("div", { class: "halves" },
      h("section", { class: "card", "aria-labelledby": "cache-room" }, h("h2", { id: "cache-room" }, "Cache"),
        gauge({ name: "In use", used: found.cache.bytes, limit: found.cache.limitBytes, words: `${bytes(found.cache.bytes)} of ${bytes(found.cache.limitBytes)}` }),
        found.pinned.capBytes ? gauge({ name: "Pinned", used: found.pinned.bytes, limit: found.pinned.capBytes, words: `${bytes(found.pinned.bytes)} of ${bytes(found.pinned.capBytes)}` }) : null,
        h("p", { class: "quiet small" }, `${bytes(found.cache.reservedBytes)} reserved for writes in progress. The cache may be deleted at any time.`)),
      h("section", { class: "card", "aria-labelledby": "data-room" }, h("h2", { id: "data-room" }, "Outbox and history"),
        gauge({ name: "In use", used: found.data.bytes, limit: found.data.limitBytes, words: `${bytes(found.data.bytes)} of ${bytes(found.data.limitBytes)}` }),
        h("p", { class: "quiet small" }, `${bytes(found.data.reservedBytes)} reserved. At the limit new writes are refused; accepted writes are never lost.`)),
    ),
    overTime([...found.history, present(found)]),
    h("section", { class: "card", "aria-labelledby": "by-category" }, h("h2", { id: "by-category" }, "By category"),
      Object.keys(found.cache.byCategory).length === 0 ? empty("Nothing is stored yet", "Each category has its own bar.") : categories(found),
      h("p", { class: "quiet small" }, "The small mark shows the guaranteed share of a category.")),
    h("section", { "aria-labelledby": "cleanup" }, h("h2", { id: "cleanup" }, "Cleanup"),
      h("p", {}, "Cleanup runs automatically. ", found.lastCleanup ? ["The last run was ", moment(found.lastCleanup), "."] : "It has not run since the start.",
        ` ${bytes(found.reclaimableBytes)} reclaimable; ${bytes(found.disk.freeBytes)} free on the disk, of which ${bytes(found.disk.minFreeBytes)} are never used.`),
      h("fieldset", { class: "checks" }, h("legend", { class: "away" }, "Options"),
        option("aggressive", "Also remove every stale entry, and every asset that is not pinned", pool), option("includesHeld", "With it, also offline copies of APIs that are away", pool), option("vacuum", "Rewrite the databases, even if that frees little space", pool)),
      h("div", { class: "actions" },
        h("button", { class: "button primary", onclick: () => run(true, pool) }, "Show what would be removed"),
        report?.dryRun ? h("button", { class: "button bad", onclick: () => run(false, pool) }, "Clean up now") : null),
      report ? result(report) : null),
  ],
};

/** The sizes of now, as one more sample: the others are taken once a minute. */
const present = (found) => ({
  at: new Date().toISOString(), cacheBytes: found.cache.bytes, dataBytes: found.data.bytes, freeDiskBytes: found.disk.freeBytes,
});

/** The sizes of the last day, a sample a minute, the last one of now. */
function overTime(samples) {
  const times = samples.map((sample) => sample.at), last = samples.at(-1);
  const size = (title, name, tone) => chart({
    title, now: bytes(last[name]), times, step: 60, write: bytes, none: "nothing is stored",
    series: [{ name: "size", class: tone, values: samples.map((sample) => sample[name]) }],
  });
  return h("section", { "aria-labelledby": "over-time" }, h("h2", { id: "over-time" }, "Size over the last day"),
    h("div", { class: "charts" }, size("Cache size", "cacheBytes", "of-hit"), size("Outbox size", "dataBytes", "of-queued"), size("Free disk space", "freeDiskBytes", "of-p50")));
}

function option(name, words, pool) {
  const input = h("input", { type: "checkbox", onchange: (event) => { wish[name] = event.target.checked; report = null; pool.refresh(); } });
  input.checked = wish[name];
  return h("label", {}, input, " ", words);
}

async function run(dryRun, pool) {
  try {
    const found = await change("POST", "/v1/storage/cleanup", { ...wish, dryRun });
    if (found) {
      report = found;
      pool.say(dryRun ? "Preview finished; nothing was removed." : `${count(found.removed.entries, "entry", "entries")} removed, ${bytes(found.removed.bytes)}.`);
    }
  } catch (problem) {
    pool.say(problem.message, "bad");
  }
  pool.refresh();
}

const reasons = { expired: "past their offline window", assets: "assets, not pinned", stale: "stale", notDue: "not due", pinned: "pinned", orphans: "orphaned files" };

function result(found) {
  const files = [["Cache", found.files.cacheBefore, found.files.cacheAfter], ["Outbox and history", found.files.dataBefore, found.files.dataAfter]];
  const rows = [["Removed", found.removed], ["Kept", found.kept]].flatMap(([what, part]) =>
    Object.entries(part.byReason).map(([reason, use]) => ({ key: `${what}${reason}`, what, reason: reasons[reason] ?? reason, ...use })));
  return h("div", { class: "report", "data-key": "report", "data-dry": String(found.dryRun) },
    h("h3", {}, found.dryRun ? "What would happen" : "What was done"),
    h("p", {}, found.removed.entries === 0 && found.operations.purged === 0
      ? "Nothing is due."
      : `${count(found.removed.entries, "entry", "entries")} (${bytes(found.removed.bytes)}) and ${count(found.operations.purged, "ended write")} ${found.dryRun ? "would be removed" : "were removed"}.`),
    rows.length ? table("Entries by outcome and reason", [
      { name: "Outcome", cell: (row) => row.what }, { name: "Reason", cell: (row) => row.reason },
      { name: "Entries", class: "figure", cell: (row) => number(row.entries) }, { name: "Size", class: "figure", cell: (row) => bytes(row.bytes) },
    ], rows) : null,
    found.advice?.length ? h("ul", { class: "list" }, found.advice.map((words) => h("li", {}, words[0].toUpperCase() + words.slice(1), "."))) : null,
    found.dryRun ? null : h("p", { class: "quiet small" }, files.map(([name, before, after]) => `${name}: ${bytes(before)} before, ${bytes(after)} after. `)),
    found.errors?.length ? h("p", { class: "problem" }, found.errors.join("; ")) : null);
}
