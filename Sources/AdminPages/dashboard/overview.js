// The overview: the state as a banner, traffic and latency, the upstreams, and the storage.
import { h, bytes, number, percent, count, span, milliseconds, moment, table, tag, empty } from "./dom.js";
import { get, change } from "./api.js";
import { chart, gauge } from "./charts.js";

const verdicts = [["hit", "hit"], ["revalidated", "revalidated"], ["collapsed", "collapsed"], ["stale", "stale"],
  ["miss", "miss"], ["pass", "passed through"], ["queued", "queued"], ["refused", "refused"], ["failed", "failed"]];
const served = ["hit", "stale", "revalidated", "collapsed"];

export const overview = {
  topics: ["operation", "conflict", "reachability", "storage", "stats"],
  title: () => "Overview",
  async load(_, pool) {
    [pool.status, pool.stats, pool.storage, pool.network] =
      await Promise.all([get("/v1/status"), get("/v1/stats"), get("/v1/storage"), get("/v1/network")]);
    pool.nodes = pool.status.fleet ? await get("/v1/fleet/nodes").then((page) => page.items, () => []) : [];
    return {};
  },
  view: (_, pool) => [banner(pool), shortage(pool), untrusting(pool), traffic(pool), figures(pool), fleet(pool),
    h("div", { class: "halves" }, upstreams(pool), room(pool)), parents(pool), tunnels(pool)],
};

/** A shortage of storage, with what to do. */
const shortage = ({ status }) => status.storage || status.refused ? h("section", { class: "card notice", "aria-label": "Storage is short" },
  [status.refused, status.storage].filter(Boolean).map((words) => h("p", {}, words[0].toUpperCase() + words.slice(1), ".")), h("p", {}, h("a", { class: "button", href: "#/storage" }, "Make room"))) : null;

/** What needs a person, beside the most important fact. */
function needs(status) {
  const parts = [
    status.conflicts > 0 ? count(status.conflicts, "conflict") : null,
    status.failed > 0 ? count(status.failed, "refused write") : null,
    status.damaged?.length > 0 ? count(status.damaged.length, "damaged body", "damaged bodies") : null,
  ].filter((part) => part !== null);
  if (status.refused) parts.push("writes without room");
  return parts;
}

/** The most important fact, with the main action for it; and all else that needs a person. */
export function standing(pool) {
  const found = fact(pool), parts = needs(pool.status);
  const isTold = parts.length < 2 && ["mid"].includes(found.tide);
  return parts.length === 0 || isTold ? found : { ...found, words: `${found.words} Waiting for you: ${parts.join(", ")}.` };
}

function fact({ status, network }) {
  const away = status.upstreams.filter((one) => ["offline", "captive"].includes(one.reachability));
  const waiting = status.pending - status.conflicts;
  const writes = waiting > 0 ? `${count(waiting, "write")} ${waiting === 1 ? "waits" : "wait"} on disk` : "no write is queued";
  if (network?.mode === "offline") {
    return { tide: "low", title: "Working offline", words: `The network is switched off and nothing is sent; ${writes}.` };
  }
  const isOff = (one) => network?.upstreams.find((row) => row.name === one.name)?.mode === "offline";
  if (status.state === "offline" && away.every(isOff)) {
    return { tide: "low", title: `Offline by your choice: ${away.map((one) => one.name).join(", ")}`, words: `Nothing is sent there; ${writes}.` };
  }
  if (status.state === "offline") {
    return {
      tide: "low", title: `Offline: ${away.map((one) => one.name).join(", ")} cannot be reached`,
      words: `Reads are answered from the cache; ${writes}${waiting === 0 ? "" : waiting === 1 ? " and is sent automatically when it is back" : " and are sent automatically when it is back"}.`, retry: waiting > 0,
    };
  }
  if (status.conflicts > 0) {
    return {
      tide: "mid", title: `${count(status.conflicts, "conflict")} ${status.conflicts === 1 ? "waits" : "wait"} for you`,
      words: "Another client changed the same data. No data is lost; later writes to the same entity wait for your decision.",
    };
  }
  if (status.failed > 0) {
    return {
      tide: "mid", title: `${count(status.failed, "write")} ${status.failed === 1 ? "was" : "were"} refused by the API`,
      words: `${status.lastFailed ? `The last one: ${status.lastFailed.method} ${status.lastFailed.url}: ${status.lastFailed.cause ?? "refused"}. ` : ""}`
        + "Retry, edit or discard in the outbox.",
    };
  }
  if (status.state === "error") return { tide: "low", title: "Storage error", words: "See the server's log for details." };
  if (status.state === "pending") return { tide: "mid", title: `${count(waiting, "write")} waiting`, words: "They are sent in order.", retry: true };
  if (status.state === "syncing") return { tide: "mid", title: `Sending ${count(status.pending, "write")}`, words: "Delivery is in progress." };
  const untried = status.upstreams.filter((one) => one.reachability === "untried");
  if (untried.length > 0) {
    return { tide: "high", title: "No write waits", words: `Nothing was sent to ${untried.map((one) => one.name).join(", ")} yet.` };
  }
  return { tide: "high", title: "Everything is in sync", words: "Every write has been delivered. Responses are cached for use without a network." };
}

/** The first of several actions stands out. */
function onePrimary(actions) {
  const shown = actions.filter((action) => action !== null);
  shown[0]?.classList.add("primary");
  return shown;
}

function banner(pool) {
  const { tide, title, words, retry } = standing(pool), { status } = pool;
  return h("section", { class: `banner ${tide}`, "aria-labelledby": "standing", "data-state": status.state },
    h("svg", { class: "tide", viewBox: "0 0 1200 160", preserveAspectRatio: "none", "aria-hidden": "true" },
      h("path", { class: "far", d: "M0 34c150-34 250-34 400 0s250 34 400 0 250-34 400 0v126H0z" }),
      h("path", { class: "near", d: "M0 58c120 26 220 26 340 0s220-26 340 0 220 26 340 0 120-20 180-13v115H0z" })),
    h("div", { class: "banner-words" }, h("h1", { id: "standing" }, title), h("p", {}, words)),
    h("div", { class: "actions" }, onePrimary([
      status.conflicts > 0 ? h("a", { class: "button", href: "#/conflicts" }, "Resolve") : null,
      status.failed === 1 && status.lastFailed
        ? h("a", { class: "button", href: `#/outbox/${status.lastFailed.operation}` }, "Show the refused write") : null,
      status.failed > 1 ? h("a", { class: "button", href: "#/outbox?state=dead" }, "Show refused writes") : null,
      retry ? h("button", { class: "button", onclick: () => push(pool) }, "Sync now") : null,
      status.pending > 0 ? h("a", { class: "button", href: "#/outbox" }, "Open the outbox") : null])));
}

export async function push(pool) {
  try {
    const report = await change("POST", "/v1/sync/push");
    if (report) pool.say(report.delivered > 0 ? `${count(report.delivered, "write")} delivered.` : "No write could be delivered yet.");
  } catch (problem) {
    pool.say(problem.message, "bad");
  }
  pool.refresh();
}

/** Combines samples of ten seconds into half a minute: more points than pixels only add noise. */
function coarse(samples, size = 3) {
  const groups = [];
  for (let end = samples.length; end > 0; end -= size) groups.unshift(samples.slice(Math.max(0, end - size), end));
  return groups.map((group) => {
    const worst = (name) => group.reduce((most, one) => (one[name] === null ? most : Math.max(most ?? 0, one[name])), null);
    return {
      at: group.at(-1).at, seconds: group.reduce((sum, one) => sum + one.seconds, 0), p50Seconds: worst("p50Seconds"), p99Seconds: worst("p99Seconds"),
      requests: Object.fromEntries(verdicts.map(([name]) => [name, group.reduce((sum, one) => sum + (one.requests[name] ?? 0), 0)])),
    };
  });
}

function traffic({ history: samples, stats }) {
  const history = coarse(samples);
  const times = history.map((sample) => sample.at);
  const rate = (sample, names) => names.reduce((sum, name) => sum + (sample.requests[name] ?? 0), 0) / sample.seconds;
  const ratio = (sample) => {
    const [hits, misses] = [rate(sample, served), rate(sample, ["miss"])];
    return hits + misses === 0 ? null : hits / (hits + misses);
  };
  const shown = verdicts.filter(([name]) => history.some((sample) => sample.requests[name] > 0));
  const last = history.at(-1);
  const perSecond = (value) => `${value >= 10 ? Math.round(value) : value.toFixed(1)}/s`;
  return h("section", { "aria-labelledby": "traffic" },
    h("div", { class: "heading" }, h("h2", { id: "traffic" }, "Traffic"),
      h("p", { class: "quiet" }, `${count(stats.requests.total, "request")} since the start, ${span(stats.uptimeSeconds)} ago`)),
    h("div", { class: "charts" },
      chart({
        title: "Requests", now: last ? perSecond(rate(last, verdicts.map(([name]) => name))) : "–", stacked: true, times, write: perSecond,
        series: shown.map(([name, words]) => ({ name: words, class: `of-${name}`, values: history.map((sample) => rate(sample, [name])) })),
      }),
      chart({
        title: "Hit ratio", now: percent(stats.cache.hitRatio), note: `${number(stats.cache.hits)} hits, ${number(stats.cache.misses)} misses`,
        times, top: 1, write: percent, series: [{ name: "hit ratio", class: "of-hit", values: history.map(ratio) }],
      }),
      chart({
        title: "Latency", now: `p50 ${milliseconds(stats.latency?.p50Seconds)}`, note: stats.latency?.p99Seconds ? `p99 ${milliseconds(stats.latency.p99Seconds)}` : null,
        times, write: milliseconds,
        series: [
          { name: "p99", class: "of-p99", values: history.map((sample) => sample.p99Seconds ?? null) },
          { name: "p50", class: "of-p50", values: history.map((sample) => sample.p50Seconds ?? null) },
        ],
      })));
}

/** How well writes arrive and reads are answered while an upstream is away, beside the targets. */
function figures({ stats }) {
  const { sync } = stats;
  if (!sync) return null;
  const row = (name, value, target, isMet) => ({ key: name, name, value: value === null ? "–" : percent(value), target, isMet: value === null || isMet });
  const rows = [
    row("Delivered of ended writes", sync.successRatio, `at least ${percent(sync.targets.successRatio)}`, sync.successRatio >= sync.targets.successRatio),
    row("Met a conflict", sync.conflictRatio, `at most ${percent(sync.targets.conflictRatio)}`, sync.conflictRatio <= sync.targets.conflictRatio),
    row(`Sent in ${span(sync.targets.seconds)}`, sync.inTimeRatio, `at least ${percent(sync.targets.successRatio)}`, sync.inTimeRatio >= sync.targets.successRatio),
    row("Reads answered while away", sync.offlineReadRatio, `at least ${percent(sync.targets.offlineReadRatio)}`, sync.offlineReadRatio >= sync.targets.offlineReadRatio),
  ];
  return h("section", { "aria-labelledby": "figures" }, h("h2", { id: "figures" }, "Synchronization since the start"),
    table("Figures beside their targets", [
      { name: "Figure", cell: (one) => one.name },
      { name: "Value", class: "figure", cell: (one) => (one.isMet ? one.value : tag(one.value, "warn")) },
      { name: "Target", cell: (one) => one.target },
    ], rows));
}

/** The first of many keys. */
const some = (keys) => keys.length > 5 ? `${keys.slice(0, 5).join(", ")} and ${keys.length - 5} more` : keys.join(", ");

const lives = { live: "good", expired: "warn", gone: "bad" };

/** The nodes that share the outbox; nothing without a fleet. */
function fleet({ status, nodes }) {
  if (!status.fleet) return null;
  const survives = status.fleet.survivesDatabaseHost ? "survives" : "does not survive";
  return h("section", { "aria-labelledby": "fleet" },
    h("div", { class: "heading" }, h("h2", { id: "fleet" }, "Fleet"),
      h("p", { class: "quiet" }, `This node is ${status.fleet.node}; an accepted write ${survives} the loss of the database's host.`)),
    status.fleet.differences.map(({ node, keys }) => h("p", {}, tag("other settings", "warn"), ` ${node}: ${some(keys)}`)),
    nodes.length === 0 ? empty("The fleet's database is away", status.fleet.detail ?? "")
      : table("Nodes that share the outbox", [
        { name: "Node", cell: (one) => one.name },
        { name: "State", cell: (one) => tag(one.state, lives[one.state]) },
        { name: "Lease renewed", cell: (one) => `${span(one.renewedSecondsAgo)} ago` },
        { name: "Behind", class: "figure", cell: (one) => number(one.behind) },
        { name: "In flight", class: "figure", cell: (one) => number(one.inflight) },
        { name: "Held", class: "figure", cell: (one) => number(one.held) },
      ], nodes.map((one) => ({ ...one, key: one.id }))));
}

const tones = { online: "good", suspect: "warn", offline: "bad", captive: "bad" };
export const meanings = { untried: "not tried yet", online: "online", suspect: "suspect", offline: "offline", captive: "captive portal" };

function upstreams(pool) {
  const { status, network } = pool;
  const mode = new Map(network.upstreams.map((one) => [one.name, one.mode]));
  return h("section", { "aria-labelledby": "upstreams" },
    h("div", { class: "heading" }, h("h2", { id: "upstreams" }, "Upstreams"),
      toggle("all upstreams", network.mode, (chosen) => setMode(chosen, null, pool))),
    status.upstreams.length === 0
      ? empty("No upstream is declared", "Undeclared hosts are proxied and cached by RFC 9111; their writes are not queued. ",
        h("a", { href: "#/setup" }, "Declare one"))
      : h("ul", { class: "cards" }, status.upstreams.map((one) => h("li", { class: "card", "data-key": one.name },
        h("div", { class: "card-head" }, h("h3", {}, one.name), tag(meanings[one.reachability] ?? one.reachability, tones[one.reachability])),
        h("p", { class: "mono small wrap" }, one.origin),
        h("p", { class: "quiet small" }, "since ", moment(one.since), one.lastError ? [" · last error ", h("code", {}, one.lastError)] : null),
        toggle(one.name, mode.get(one.name) ?? "auto", (chosen) => setMode(chosen, one.name, pool))))));
}

function toggle(name, mode, choose) {
  return h("fieldset", { class: "switch" }, h("legend", { class: "away" }, `Network of ${name}`),
    [["auto", "Automatic"], ["offline", "Offline"], ["online", "Online"]].map(([value, words]) => {
      const input = h("input", { type: "radio", name: `mode-${name}`, value, onchange: () => choose(value) });
      input.checked = mode === value;
      return h("label", {}, input, h("span", {}, words));
    }));
}

async function setMode(mode, upstream, pool) {
  try {
    const done = await change("PUT", "/v1/network", { mode, upstream });
    if (done) pool.say(`${upstream ?? "All upstreams"}: ${mode === "auto" ? "automatic" : mode}.`);
  } catch (problem) {
    pool.say(problem.message, "bad");
  }
  pool.refresh();
}

/** Clients that refused Rockpool's certificate: nothing is cached for them until they accept it. */
function untrusting({ network }) {
  if (!network.untrusting?.length) return null;
  const isPassed = (one) => one.bypassedUntil && new Date(one.bypassedUntil) > new Date();
  return h("section", { "aria-labelledby": "untrusting" },
    h("div", { class: "heading" }, h("h2", { id: "untrusting" }, "Clients that do not trust us"), h("a", { href: "#/setup" }, "Set up a client")),
    h("p", { class: "quiet" }, "They refused Rockpool's certificate, so nothing is cached for them. Make them trust the authority (",
      h("code", {}, "rockpool ca install"), ", or ", h("code", {}, "rockpool run -- "), "the command), or do not decrypt the host."),
    table("Clients by requested host, latest first", [
      { name: "Client", cell: (one) => h("span", { class: "mono" }, one.client) },
      { name: "Host", cell: (one) => h("span", { class: "mono" }, one.host) },
      { name: "TLS alert", cell: (one) => [h("code", {}, one.alert), one.count > 1 ? ` ${number(one.count)} times` : ""] },
      { name: "Last", cell: (one) => moment(one.at) },
      { name: "Now", cell: (one) => isPassed(one) ? tag("not decrypted", "warn") : tag("certificate refused", "bad") },
    ], network.untrusting.map((one) => ({ ...one, key: `${one.client} ${one.host}` }))));
}

/** The parent proxies, in their order; nothing without one. */
function parents({ status }) {
  if (!status.parents?.length) return null;
  return h("section", { "aria-labelledby": "parents" }, h("h2", { id: "parents" }, "Parent proxies"),
    table("Parent proxies in their order", [
      { name: "Parent", cell: (one) => h("span", { class: "mono" }, one.url) },
      { name: "Of", cell: (one) => one.of },
      { name: "State", cell: (one) => tag(one.state, one.state === "up" ? "good" : "bad") },
      { name: "Failed since", cell: (one) => (one.since ? moment(one.since) : "–") },
      { name: "Used now", cell: (one) => (one.used ? "yes" : "no") },
    ], status.parents.map((one) => ({ ...one, key: `${one.of} ${one.url}` }))));
}

/** Connections that are passed on unread: nothing of them is cached or queued. */
function tunnels({ stats }) {
  if (!stats.tunnels?.length) return null;
  return h("section", { "aria-labelledby": "tunnels" },
    h("div", { class: "heading" }, h("h2", { id: "tunnels" }, "Tunnels, not decrypted"), h("a", { href: "#/requests?verdict=tunnel" }, "Show each")),
    h("p", { class: "quiet" }, "Nothing of them is cached or queued. Declare the API (", h("code", {}, "rockpool add"), " with its URL), or let the client use HTTP."),
    table("Hosts of tunnels, the most used first", [
      { name: "Host", cell: (one) => h("span", { class: "mono" }, one.host) },
      { name: "Tunnels", cell: (one) => number(one.tunnels) },
      { name: "Refused", cell: (one) => number(one.refused) },
      { name: "Sent", cell: (one) => bytes(one.sentBytes) },
      { name: "Received", cell: (one) => bytes(one.receivedBytes) },
    ], stats.tunnels.slice(0, 10).map((one) => ({ ...one, key: one.host }))));
}

export function categories({ cache }) {
  const names = Object.entries(cache.byCategory).sort(([, a], [, b]) => b.bytes - a.bytes);
  return names.map(([name, use]) => gauge({
    name, used: use.bytes, limit: use.limitBytes ?? cache.limitBytes, marks: [(use.guaranteedBytes ?? 0) / (use.limitBytes ?? cache.limitBytes)],
    words: `${bytes(use.bytes)} of ${bytes(use.limitBytes ?? cache.limitBytes)} · ${count(use.entries, "entry", "entries")}`,
  }));
}

function room({ storage }) {
  return h("section", { "aria-labelledby": "room" },
    h("div", { class: "heading" }, h("h2", { id: "room" }, "Storage"), h("a", { href: "#/storage" }, "Clean up")),
    h("div", { class: "card" },
      gauge({ name: "Cache", used: storage.cache.bytes, limit: storage.cache.limitBytes,
        words: `${bytes(storage.cache.bytes)} of ${bytes(storage.cache.limitBytes)}` }),
      h("div", { class: "within" }, categories(storage)),
      gauge({ name: "Outbox and history", used: storage.data.bytes, limit: storage.data.limitBytes,
        words: `${bytes(storage.data.bytes)} of ${bytes(storage.data.limitBytes)}` }),
      h("p", { class: "quiet small" }, `${bytes(storage.disk.freeBytes)} free on the disk · ${bytes(storage.reclaimableBytes)} reclaimable`)));
}
