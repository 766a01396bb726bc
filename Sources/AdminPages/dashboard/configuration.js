// The effective configuration with the source of each value, and the limits beside what is in use.
import { h, bytes, number, table, tag, empty } from "./dom.js";
import { get, hasToken, readSecret } from "./api.js";
import { gauge } from "./charts.js";

/** The text that keys must contain, and whether only values that differ from the default are shown. */
const wish = { text: "", isSet: false };
const limitNames = /(^|\.)(limits\..*|.*_limit|max_.*|min_free|pin_cap|guarantee|share|timeouts\..*|connections|keep)$/;

export const configuration = {
  topics: ["storage"],
  title: () => "Configuration",
  async load(_, pool) {
    const [storage, status] = await Promise.all([get("/v1/storage"), get("/v1/status")]);
    pool.status = status;
    if (!hasToken()) return { storage, status, values: null };
    try {
      return { storage, status, values: await readSecret("/v1/configuration/values") };
    } catch (problem) {
      if (problem.status !== 401) throw problem;
      return { storage, status, values: null };
    }
  },
  view: ({ storage, status, values }, pool) => [
    h("h1", {}, "Configuration"),
    facts(status, values),
    h("section", { "aria-labelledby": "limits" }, h("h2", { id: "limits" }, "Limits in use"),
      h("div", { class: "card" }, limits(storage))),
    values === null ? locked(pool) : keys(values.items, pool),
  ],
};

function facts(status, values) {
  const rows = [["File", values?.file ?? status.configFile ?? "none: the defaults apply"], ["State directory", status.stateDir], ["Cache directory", status.cacheDir],
    ["Proxy", status.proxy], ["Version", status.version]];
  return h("section", { class: "card", "aria-label": "Places" },
    h("dl", { class: "facts" }, rows.filter(([, value]) => value).map(([name, value]) => [h("dt", {}, name), h("dd", { class: "mono wrap" }, value)])),
    h("p", { class: "quiet small" }, "A change is made in the file; check and apply it with ", h("code", {}, "rockpool config check && rockpool reload"), "."));
}

function limits({ cache, data, pinned, disk }) {
  const one = (name, used, limit, key) => limit > 0 ? gauge({ name, used, limit, words: `${bytes(used)} of ${bytes(limit)} · ${key}` }) : null;
  return [one("Cache", cache.bytes, cache.limitBytes, "storage.cache_limit"), one("Outbox and history", data.bytes, data.limitBytes, "storage.data_limit"),
    one("Pinned responses", pinned.bytes, pinned.capBytes, "storage.pin_cap"),
    h("p", { class: "quiet small" }, `${bytes(disk.freeBytes)} free on the disk, of which ${bytes(disk.minFreeBytes)} stay free (storage.min_free).`)];
}

const locked = (pool) => h("div", { class: "empty" }, h("p", { class: "empty-title" }, "The values need the admin token"),
  h("p", {}, "They may name the files of passwords, so a reader shows the token first."),
  h("p", {}, h("button", { class: "button primary", onclick: async () => { if (await readSecret("/v1/configuration/values")) pool.refresh(); } }, "Show the configuration")));

function keys(items, pool) {
  const shown = items.filter((item) => item.key.includes(wish.text.trim().toLowerCase()) && (!wish.isSet || item.source !== null));
  const input = h("input", { type: "checkbox", onchange: (event) => { wish.isSet = event.target.checked; pool.redraw(); } });
  input.checked = wish.isSet;
  return h("section", { "aria-labelledby": "values" },
    h("h2", { id: "values" }, "Effective values"),
    h("form", { class: "search two", role: "search", onsubmit: (event) => event.preventDefault() },
      h("div", {}, h("label", { for: "key" }, "Key contains"), h("input", { id: "key", type: "search", value: wish.text, spellcheck: "false", placeholder: "storage",
        oninput: (event) => { wish.text = event.target.value; pool.redraw(); } })),
      h("label", { class: "check" }, input, " Only what differs from the defaults")),
    h("p", { class: "quiet small", role: "status" }, `${number(shown.length)} of ${number(items.length)} keys`),
    shown.length === 0 ? empty("No key matches", "Keys are written as in the file: storage.cache_limit.")
      : table("Keys of the configuration", [
        { name: "Key", class: "wide", cell: (row) => [h("code", { class: "wrap" }, row.key), limitNames.test(row.key) ? [" ", tag("limit")] : null] },
        { name: "Value", cell: (row) => h("span", { class: "mono wrap" }, text(row.value)) },
        { name: "Source", cell: (row) => (row.source === null ? h("span", { class: "quiet" }, "default") : h("span", { class: "mono wrap small" }, row.source)) },
      ], shown));
}

const text = (value) => value === null ? "–" : Array.isArray(value) ? (value.length ? value.join(", ") : "none") : value === "" ? "\"\"" : String(value);
