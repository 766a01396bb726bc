// Creates elements, patches one tree into another, and formats values. No HTML is ever parsed: text stays text.

const drawn = new Set(["svg", "path", "rect", "line", "circle", "g", "polyline", "polygon", "text", "title"]);
const handlers = ["onclick", "onchange", "oninput", "onsubmit", "onkeydown", "ontoggle", "onpointermove", "onpointerleave"];

/** An element. `on…` members are handlers, `style` an object, `true` an attribute without a value; null and false are omitted. */
export function h(name, members, ...children) {
  const element = drawn.has(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(members ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element[key] = value;
    else if (key === "style") for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
    else element.setAttribute(key, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** Makes the children of `element` equal to `children`, and keeps equal nodes: focus, scrolling and open details are preserved. */
export function show(element, ...children) {
  const wanted = document.createDocumentFragment();
  append(wanted, children);
  patchChildren(element, wanted);
}

function patchChildren(old, fresh) {
  const next = [...fresh.childNodes];
  next.forEach((child, index) => {
    const present = old.childNodes[index];
    if (!present) old.append(child);
    else patch(present, child);
  });
  while (old.childNodes.length > next.length) old.lastChild.remove();
}

function patch(old, fresh) {
  const isSame = old.nodeName === fresh.nodeName && old.dataset?.key === fresh.dataset?.key;
  if (!isSame) return old.replaceWith(fresh);
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  // An element that the user is editing is not changed.
  if (old.dataset?.own !== undefined) return;
  for (const { name } of [...old.attributes]) {
    if (name !== "open" && name !== "style" && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (name !== "style" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (old.style.cssText !== fresh.style.cssText) old.style.cssText = fresh.style.cssText;
  for (const name of handlers) old[name] = fresh[name];
  if (old.nodeName === "INPUT" && ["radio", "checkbox"].includes(old.type)) old.checked = fresh.checked;
  patchChildren(old, fresh);
}

/** Bytes in powers of ten, as the configuration writes them. */
export function bytes(count) {
  if (count === null || count === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = Math.abs(count), unit = 0;
  while (value >= 999.5 && unit < units.length - 1) { value /= 1000; unit += 1; }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

export const number = (value) => (value ?? 0).toLocaleString("en");
export const percent = (share) => `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
/** A number with its noun, in singular or plural. */
export const count = (value, one, many = one + "s") => `${number(value)} ${value === 1 ? one : many}`;

/** Seconds in the two largest units. */
export function span(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

export function milliseconds(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0.001) return "< 1 ms";
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`;
}

/** A time relative to now, with the absolute time on hover and for programs. */
export function moment(text) {
  if (!text) return "–";
  const at = new Date(text), away = (Date.now() - at) / 1000;
  const words = Math.abs(away) < 2 ? "now" : away > 0 ? `${span(away)} ago` : `in ${span(-away)}`;
  return h("time", { datetime: text, title: at.toLocaleString() }, words);
}

/** The time of day. */
export const clock = (text) => new Date(text).toLocaleTimeString("en-GB");

/** The part of a URL after its origin. */
export function path(url) {
  const start = url.indexOf("://");
  const slash = start < 0 ? 0 : url.indexOf("/", start + 3);
  return slash < 0 ? "/" : url.slice(slash);
}

/** A word with a colour, never a colour alone. */
export const tag = (word, tone = "") => h("span", { class: `tag ${tone}` }, word);

export const empty = (title, ...words) => h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), h("p", {}, ...words));

/** A value on one line if it is short enough. */
export function brief(value) {
  const line = pretty(value).replace(/\s*\n\s*/g, " ");
  return typeof value !== "string" && line.length <= 60 ? line : pretty(value);
}

export const pretty = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

/** The host of a URL. */
export function host(url) {
  const start = url.indexOf("://");
  return start < 0 ? "" : url.slice(start + 3).split("/", 1)[0];
}

/** The short form of an identity's id; the whole one is the title. */
export const principal = (id) => (id ? h("span", { class: "mono", title: id }, id.length > 12 ? `${id.slice(0, 10)}…` : id) : "–");

/** A select with a label: `values` are words, or pairs of a value and its words. */
export const choice = (name, words, values, wish) => h("div", {}, h("label", { for: name }, words),
  h("select", { id: name }, h("option", { value: "" }, "All"), values.map((one) => (Array.isArray(one) ? one : [one, one])).map(([value, text]) =>
    h("option", { value, selected: value === wish[name] }, text))));

/** A table with its column name on each cell, so that it can be shown as a list on a narrow screen. */
export function table(caption, columns, rows) {
  const naming = columns.find((column) => !column.head);
  return h("table", { class: "rows" },
    h("caption", {}, caption),
    h("thead", {}, h("tr", {}, columns.map((column) => h(column.head ? "td" : "th", { scope: column.head ? null : "col", class: column.class }, column.head ?? column.name)))),
    h("tbody", {}, rows.map((row) => h("tr", { "data-key": row.key }, columns.map((column) => {
      const isName = column === naming;
      return h(isName ? "th" : "td", { scope: isName ? "row" : null, class: column.class, "data-name": column.name }, column.cell(row));
    })))));
}
