// Lines and areas over time as SVG, with a text description for screen readers and values under the pointer.
import { h, clock } from "./dom.js";

const width = 600, height = 132;
/** The places for samples; fewer samples stand at the right end, and do not fill the chart. */
const places = 60;

/**
 * @param series [{ name, class, values }], stacked when `stacked`; null values are gaps.
 * @param times one RFC 3339 time for each value.
 * @param step the seconds between two samples.
 * @param none when a chart without values gets its first.
 */
export function chart({ times, series, step = 10, ...rest }) {
  const missing = times.length === 0 ? 0 : Math.max(0, places - times.length);
  const before = Array.from({ length: missing }, (_, index) => new Date(Date.parse(times[0]) - (missing - index) * step * 1000).toISOString());
  const gap = before.map(() => null);
  return drawn({ ...rest, times: [...before, ...times], series: series.map((one) => ({ ...one, values: [...gap, ...one.values] })) });
}

function drawn({ title, now, note, series, times, stacked = false, top = null, write, none = "the chart starts with the first requests" }) {
  const totals = times.map((_, index) => stacked ? series.reduce((sum, one) => sum + (one.values[index] ?? 0), 0)
    : Math.max(...series.map((one) => one.values[index] ?? 0)));
  const peak = Math.max(...totals, 0), ceiling = top ?? niceCeiling(peak);
  const x = (index) => (times.length < 2 ? width : (index / (times.length - 1)) * width);
  const y = (value) => height - (value / ceiling) * height;
  const isEmpty = times.length < 2 || series.every((one) => one.values.every((value) => value === null || value === 0));
  const shapes = stacked ? areas(series, times, x, y) : series.map((one) => h("path", { class: `line ${one.class}`, d: line(one.values, x, y) }));
  return h("figure", { class: "chart", "data-key": title },
    h("figcaption", {},
      h("h3", {}, title), h("p", { class: "now" }, now), note ? h("p", { class: "quiet small" }, note) : null),
    isEmpty
      ? h("div", { class: "plot flat" }, h("p", { class: "quiet small" }, `No data yet: ${none}.`))
      : h("div", { class: "plot" },
        h("span", { class: "scale", "aria-hidden": "true" }, write(ceiling)),
        h("svg", {
          viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": words(title, series, write),
          onpointermove: (event) => point(event, series, times, write), onpointerleave: leave,
        }, [0.5, 1].map((share) => h("line", { class: "grid", x1: 0, x2: width, y1: share * height, y2: share * height })), shapes),
        h("p", { class: "axis", "aria-hidden": "true" }, h("span", {}, clock(times[0])), h("output", {}), h("span", {}, clock(times.at(-1))))),
    h("ul", { class: "legend" }, series.length > 1 && !isEmpty ? series.map((one) => h("li", { class: one.class }, one.name)) : null));
}

function areas(series, times, x, y) {
  const floor = times.map(() => 0);
  return series.map((one) => {
    const below = floor.slice();
    one.values.forEach((value, index) => { floor[index] += value ?? 0; });
    const over = floor.map((value, index) => `${round(x(index))},${round(y(value))}`);
    const under = below.map((value, index) => `${round(x(index))},${round(y(value))}`).reverse();
    return h("polygon", { class: `area ${one.class}`, points: [...over, ...under].join(" ") });
  });
}

function line(values, x, y) {
  let isDown = false;
  return values.map((value, index) => {
    if (value === null) { isDown = false; return ""; }
    const isLone = !isDown && (values[index + 1] ?? null) === null;
    const step = `${isDown ? "L" : "M"}${round(x(index))} ${round(y(value))}${isLone ? "h4" : ""}`;
    isDown = true;
    return step;
  }).join("");
}

const round = (value) => Math.round(value * 10) / 10;

function niceCeiling(peak) {
  if (peak <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(peak));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= peak);
}

function words(title, series, write) {
  const parts = series.map((one) => {
    const known = one.values.filter((value) => value !== null);
    if (!known.length) return `${one.name}: no values`;
    return `${one.name}: now ${write(known.at(-1))}, between ${write(Math.min(...known))} and ${write(Math.max(...known))}`;
  });
  return `${title}. ${parts.join("; ")}.`;
}

function point(event, series, times, write) {
  const svg = event.currentTarget, box = svg.getBoundingClientRect();
  const index = Math.round(((event.clientX - box.left) / box.width) * (times.length - 1));
  if (!times[index]) return;
  const values = series.map((one) => `${one.name} ${one.values[index] === null ? "–" : write(one.values[index])}`);
  svg.parentNode.querySelector("output").textContent = `${clock(times[index])}  ${values.join(" · ")}`;
}

function leave(event) { event.currentTarget.parentNode.querySelector("output").textContent = ""; }

/** A bar for the used share of a limit. */
export function gauge({ name, used, limit, marks = [], words }) {
  const share = limit ? Math.min(1, used / limit) : 0;
  const tone = share >= 0.98 ? "bad" : share >= 0.85 ? "warn" : "";
  return h("div", { class: `gauge ${tone}`, "data-key": name },
    h("p", { class: "gauge-name" }, h("span", {}, name), h("span", { class: "figures" }, words)),
    h("div", {
      class: "bar", role: "meter", "aria-label": `${name}: ${wordsOf(words)}`, "aria-valuemin": 0, "aria-valuemax": Math.max(limit ?? 0, 1),
      "aria-valuenow": Math.min(used, limit ?? used),
    },
    share > 0 ? h("span", { class: "fill", style: { width: `${share * 100}%` } }) : null,
    marks.filter((mark) => mark > 0 && mark < 1).map((mark) => h("span", { class: "tick", style: { left: `${mark * 100}%` } }))));
}

const wordsOf = (words) => [words].flat().map((part) => part?.textContent ?? part).join(" ");
