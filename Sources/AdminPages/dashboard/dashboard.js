// The page: its views, their shared state, and updates (by `/v1/events`, or by polling every few seconds without it).
import { h, show, number } from "./dom.js";
import { get, takeCode, takeToken } from "./api.js";

/**
 * The views: each is exported by a file that is fetched when it is first opened. Its `load` fetches its data, its `view` draws it, its `topics`
 * are the events that repeat both.
 */
const views = [
  { pattern: /^\/$/, page: "/", file: "overview" },
  { pattern: /^\/requests$/, page: "/requests", file: "requests" },
  { pattern: /^\/requests\/([^/]+)$/, page: "/requests", file: "requests", name: "request" },
  { pattern: /^\/outbox$/, page: "/outbox", file: "outbox" },
  { pattern: /^\/outbox\/([^/]+)$/, page: "/outbox", file: "outbox", name: "operation" },
  { pattern: /^\/conflicts$/, page: "/conflicts", file: "conflicts" },
  { pattern: /^\/conflicts\/([^/]+)$/, page: "/conflicts", file: "conflicts", name: "conflict" },
  { pattern: /^\/cache$/, page: "/cache", file: "cache" },
  { pattern: /^\/cache\/entry$/, page: "/cache", file: "cache", name: "entry" },
  { pattern: /^\/storage$/, page: "/storage", file: "storage" },
  { pattern: /^\/sync$/, page: "/sync", file: "sync" },
  { pattern: /^\/entity$/, page: "/outbox", file: "entity" },
  { pattern: /^\/configuration$/, page: "/configuration", file: "configuration" },
  { pattern: /^\/setup$/, page: "/setup", file: "setup" },
  { pattern: /^\/help$/, page: "/help", file: "help" },
  { pattern: /^\/docs\/([a-z-]+(?:\/[a-z-]+)?)$/, page: "/help", file: "docs" },
];

/** Fetches a view, unless the browser has its file. */
const viewOf = async ({ page, file, name = file }) => ({ page, ...(await import(`./${file}.js`))[name] });

const pages = [
  ["/", "Overview"], ["/requests", "Requests"], ["/outbox", "Outbox", () => pool.status?.pending], ["/conflicts", "Conflicts", () => pool.status?.conflicts],
  ["/cache", "Cache"], ["/storage", "Storage"], ["/sync", "Sync"], ["/configuration", "Configuration"], ["/setup", "Set up a client"], ["/help", "Help"],
];

/** The number of history samples kept: one hour of ten seconds each. */
const longest = 360;
const pool = { status: null, stats: null, network: null, storage: null, history: [], refresh, redraw: () => draw(), say, go };
/** The requested view; the drawn one with its data; the number of refreshes. */
let current = null, drawn = null, turn = 0, opening = 0;
/** Ends when what every view draws from is there. */
let ready = Promise.resolve();

async function open() {
  if (takeToken()) return open();
  if (await takeCode()) return open();
  const [place, search] = location.hash.slice(1).split("?");
  const target = place || "/";
  const next = views.find((view) => view.pattern.test(target)) ?? views[0];
  const isOther = current?.hash !== location.hash;
  const own = (opening += 1), hash = location.hash;
  let view;
  try {
    view = await viewOf(next);
  } catch (problem) {
    if (own === opening) fail(problem);
    return;
  }
  // Another view was opened meanwhile.
  if (own !== opening) return;
  current = { view, hash, parts: next.pattern.exec(target)?.slice(1) ?? [], search: new URLSearchParams(search ?? "") };
  await refresh();
  if (!isOther) return;
  scrollTo(0, 0);
  document.querySelector("#pages [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  document.querySelector("#main h1")?.setAttribute("tabindex", "-1");
  document.querySelector("#main h1")?.focus({ preventScroll: true });
}

/** Fetches the view's data again and draws it. The newest refresh wins. */
async function refresh() {
  // The file of the requested view could not be fetched.
  if (current?.hash !== location.hash) return open();
  const own = (turn += 1);
  const asked = current;
  try {
    const [found] = await Promise.all([asked.view.load(asked, pool), ready]);
    if (own !== turn) return;
    drawn = { at: asked, data: found };
    draw();
  } catch (problem) {
    if (own === turn) fail(problem);
  }
}

function draw() {
  drawPages();
  if (drawn === null) return;
  const { at, data } = drawn;
  document.title = `${at.view.title(data)} · Rockpool`;
  show(document.getElementById("main"), at.view.view(data, pool, at));
  document.body.dataset.shown = at.hash;
}

function drawPages() {
  show(document.getElementById("pages"), pages.map(([target, name, badge]) => {
    const waiting = badge?.() ?? 0;
    return h("li", {}, h("a", { href: `#${target}`, "aria-current": current?.view.page === target ? "page" : null },
      name, waiting > 0 ? h("span", { class: "badge" }, number(waiting), h("span", { class: "away" }, " waiting")) : null));
  }));
}

function fail(problem) {
  const isGone = problem instanceof TypeError;
  drawn = null;
  show(document.getElementById("main"),
    h("h1", {}, isGone ? "The server cannot be reached" : "This page cannot be shown"),
    h("p", {}, isGone ? "Rockpool is not running or is restarting. This page continues automatically as soon as the server responds." : problem.message),
    h("p", {}, h("a", { href: "#/" }, "Go to the overview")));
}

let silence = 0;
function say(words, tone = "") {
  clearTimeout(silence);
  show(document.getElementById("said"), h("p", { class: tone }, words));
  silence = setTimeout(() => show(document.getElementById("said")), 7000);
}

function go(target) {
  if (location.hash === `#${target}`) open();
  else location.hash = target;
}

// Live updates.

const happened = new Set();
let looking;

/** One refresh for all events of a short time, as when a whole queue is delivered. */
function changed(topic) {
  happened.add(topic);
  looking ??= setTimeout(async () => {
    const topics = [...happened];
    happened.clear();
    looking = undefined;
    if (topics.some((topic) => topic !== "stats")) await readStatus().catch(() => {});
    if (!current || topics.some((topic) => current.view.topics.includes(topic))) refresh();
  }, 120);
}

async function readStatus() {
  pool.status = await get("/v1/status");
  document.getElementById("version").textContent = `Rockpool ${pool.status.version}`;
  drawPages();
}

function takeStats(stats) {
  pool.stats = stats;
  const sample = stats.sample;
  const last = pool.history.at(-1)?.at ?? "";
  if (!sample || sample.at === last) return;
  // An older sample means that the clock was set back.
  pool.history = [...(sample.at < last ? [] : pool.history), sample].slice(-longest);
}

function shown(words, tone) {
  const live = document.getElementById("live");
  live.className = `live ${tone}`;
  document.getElementById("live-text").textContent = words;
}

function listen() {
  const events = new EventSource("/v1/events");
  events.onopen = async () => {
    shown("Live", "good");
    await readStatus().catch(() => {});
    refresh();
  };
  for (const topic of ["operation", "conflict", "reachability", "storage"]) {
    events.addEventListener(topic, () => changed(topic));
  }
  events.addEventListener("stats", (event) => {
    takeStats(JSON.parse(event.data));
    changed("stats");
  });
  events.onerror = () => {
    if (events.readyState !== EventSource.CLOSED) return shown("Reconnecting", "bad");
    events.close();
    poll();
  };
}

/** Without a stream, polls for the same data. */
async function poll() {
  try {
    await readStatus();
    takeStats(await get("/v1/stats"));
    shown("Polling every 3 s", "good");
    if (!document.querySelector("[data-own]:focus-within, dialog[open]")) await refresh();
  } catch {
    shown("No response", "bad");
  }
  setTimeout(poll, 3000);
}

async function start() {
  addEventListener("hashchange", open);
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea, select, dialog")) return;
    const field = document.querySelector("main input[type=search]");
    if (!field) return;
    event.preventDefault();
    field.focus();
  });
  // At the same time as the view's own data. The view reports an error; the stream reconnects.
  ready = Promise.all([get("/v1/stats/history"), readStatus()]).then(([history]) => { pool.history = history.items; }).catch(() => {});
  await open();
  listen();
  setInterval(draw, 15000);
}

start();
