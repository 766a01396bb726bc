// Long lists: pages by jump, the selection of rows, and changes of many rows at once.
import { h, count, number } from "./dom.js";
import { query } from "./api.js";

/** The number of rows on a page. */
export const pageSize = 100;
/** The most calls in flight during a change of many rows. */
const width = 4;

/** `offset`, `limit` and `count` of the page that an address names. */
export function place(at) {
  const page = Math.max(1, Math.floor(Number(at.search.get("page")) || 1));
  return { page, offset: (page - 1) * pageSize, limit: pageSize, count: true };
}

/** Links to the other pages, and a field to jump to one. `wish` are the members of the address that stay. */
export function pager(target, wish, page, total, pool) {
  const last = Math.max(1, Math.ceil(total / pageSize));
  if (last === 1 && page === 1) return null;
  const to = (number, words, off) => off ? h("span", { class: "button off", "aria-disabled": "true" }, words)
    : h("a", { class: "button", href: `#${query(target, { ...wish, page: number })}` }, words);
  return h("nav", { class: "pager", "aria-label": "Pages of the list" },
    to(1, "First", page <= 1), to(page - 1, "Previous", page <= 1),
    h("form", { class: "jump", onsubmit: (event) => {
      event.preventDefault();
      const wanted = Math.min(last, Math.max(1, Number(event.currentTarget.querySelector("input").value) || 1));
      pool.go(query(target, { ...wish, page: wanted }));
    } },
    h("label", { for: "page" }, "Page"), h("input", { id: "page", type: "number", min: 1, max: last, value: page, inputmode: "numeric", "data-key": page }),
    h("span", {}, `of ${number(last)}`), h("button", { class: "button" }, "Go")),
    to(page + 1, "Next", page >= last), to(last, "Last", page >= last),
    h("span", { class: "quiet small" }, `${count(total, "row")} in all`));
}

/** The chosen rows of one list, by key; it is kept while the page is redrawn and emptied with its filter. */
export class Selection {
  chosen = new Map();
  filter = null;

  /** Forgets the chosen rows if the list has another filter than before. */
  attend(filter) {
    if (filter !== this.filter) this.chosen.clear();
    this.filter = filter;
  }

  /** A checkbox for one row. */
  box(row, name, pool) {
    const input = h("input", { type: "checkbox", "aria-label": `Select ${name}`, onchange: (event) => {
      if (event.target.checked) this.chosen.set(row.key, row);
      else this.chosen.delete(row.key);
      pool.redraw();
    } });
    input.checked = this.chosen.has(row.key);
    return h("label", { class: "pick" }, input);
  }

  /** A checkbox for all rows of the page. */
  all(rows, pool) {
    const every = rows.length > 0 && rows.every((row) => this.chosen.has(row.key));
    const input = h("input", { type: "checkbox", "aria-label": "Select all rows of this page", onchange: () => {
      for (const row of rows) every ? this.chosen.delete(row.key) : this.chosen.set(row.key, row);
      pool.redraw();
    } });
    input.checked = every;
    return h("label", { class: "pick" }, input);
  }

  /**
   * The number of chosen rows with the actions on them; hidden while none is chosen. `total` is the number of rows of all pages, and
   * `everything` fetches them.
   */
  bar(actions, { total, everything, pool }) {
    const size = this.chosen.size;
    // Always an element: what follows keeps its place, and so its focus.
    if (size === 0) return h("section", { class: "bulk", hidden: true, "aria-label": "Selected rows" });
    return h("section", { class: "bulk", "aria-label": "Selected rows" },
      h("p", { role: "status" }, `${number(size)} of ${number(total)} selected`),
      total > size ? h("button", { class: "button", onclick: async () => {
        for (const row of await everything()) this.chosen.set(row.key, row);
        pool.redraw();
      } }, `Select all ${number(total)}`) : null,
      h("button", { class: "button", onclick: () => { this.chosen.clear(); pool.redraw(); } }, "Select none"),
      h("span", { class: "bulk-actions" }, actions));
  }

  /** Makes one change for each chosen row, a few at a time, and says how many succeeded. A row that was changed is no longer chosen. */
  async each(change, words, pool) {
    const rows = [...this.chosen.values()];
    let done = 0, problem = null, isStopped = false;
    const work = async () => {
      for (let row = rows.shift(); row && !isStopped; row = rows.shift()) {
        try {
          if (!(await change(row))) { isStopped = true; break; }
          done += 1;
          this.chosen.delete(row.key);
          if (done % 50 === 0) pool.say(`${words}: ${number(done)} so far…`);
        } catch (failure) {
          problem ??= failure;
        }
      }
    };
    const first = rows.shift();
    if (first) {
      // The first one alone: it may ask for the token.
      rows.unshift(first);
      const rest = rows.splice(1);
      await work();
      rows.push(...rest);
    }
    await Promise.all(Array.from({ length: width }, work));
    pool.say(problem ? `${words}: ${number(done)}; ${problem.message}` : `${words}: ${number(done)}.`, problem ? "bad" : "");
    pool.refresh();
  }
}

/** Every row that a list of the API has, in pages of 1000. `list(offset)` fetches one. */
export async function everyRow(list) {
  const rows = [];
  for (;;) {
    const page = await list(rows.length);
    rows.push(...page.items);
    if (page.items.length === 0 || rows.length >= page.total) return rows;
  }
}
