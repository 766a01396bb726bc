// Conflicts: base, mine and theirs, resolved field by field, as a whole, or by hand; and undone.
import { h, moment, pretty, brief, tag, empty } from "./dom.js";
import { get, change, confirm, query } from "./api.js";
import { lines } from "./diff.js";

const kinds = {
  "edit-edit": "Both sides changed it", "edit-delete": "Mine changed it, theirs deleted it",
  "delete-edit": "Mine deleted it, theirs changed it", "create-create": "Both sides created it",
};
const outcomes = { mine: "mine kept", theirs: "theirs kept", both: "both kept", merged: "merged" };

export const conflicts = {
  topics: ["conflict", "operation"],
  title: () => "Conflicts",
  async load(at) {
    const state = at.search.get("state") ?? "open";
    return { state, page: await get(query("/v1/conflicts", { state, limit: 100, cursor: at.search.get("cursor") })) };
  },
  view: ({ state, page }, pool) => [
    h("h1", {}, "Conflicts"),
    h("nav", { class: "filters", "aria-label": "Which conflicts" }, [["open", "Open"], ["closed", "Resolved"], ["all", "All"]].map(([value, name]) =>
      h("a", { href: `#/conflicts?state=${value}`, "aria-current": value === state ? "true" : null }, name))),
    state === "open" && page.items.length > 1 ? h("div", { class: "actions" },
      h("button", { class: "button", onclick: () => resolveAll("mine", page.items, pool) }, "Keep mine in all"),
      h("button", { class: "button", onclick: () => resolveAll("theirs", page.items, pool) }, "Keep theirs in all")) : null,
    page.items.length === 0
      ? empty(state === "open" ? "No open conflicts" : "No conflicts",
        "A conflict is opened when a queued write and another change affect the same data and no rule merges them.")
      : h("ul", { class: "operations" }, page.items.map((one) => h("li", { "data-key": one.id },
        h("a", { class: "operation", href: `#/conflicts/${one.id}` },
          h("span", { class: "operation-name mono wrap" }, one.entity), one.closedAt ? tag(outcomes[one.resolution] ?? "closed", "good") : tag("open", "warn"),
          h("span", { class: "why" }, kinds[one.kind] ?? one.kind, one.decidedBy ? `, resolved by ${one.decidedBy === "strategy" ? `rule (${one.strategy})` : "a person"}` : ""),
          h("span", { class: "quiet small" }, one.upstream, " · ", moment(one.closedAt ?? one.openedAt)))))),
    page.next ? h("p", {}, h("a", { class: "button", href: `#/conflicts?state=${state}&cursor=${encodeURIComponent(page.next)}` }, "More")) : null,
  ],
};

/** The choices made so far, by conflict; they are kept while the page is redrawn. */
const drafts = new Map();

export const conflict = {
  topics: ["conflict", "operation"],
  title: (one) => `Conflict in ${one.entity}`,
  load: (at) => get(`/v1/conflicts/${at.parts[0]}`),
  view(one, pool, at) {
    const isOpen = !one.closedAt, how = at.search.get("show") ?? "fields";
    return [
      h("p", { class: "back" }, h("a", { href: "#/conflicts" }, "Conflicts")),
      h("div", { class: "heading top" }, h("h1", { class: "wrap" }, one.entity),
        isOpen ? tag("open", "warn") : tag(outcomes[one.resolution] ?? "closed", "good")),
      h("p", { class: "lead" }, kinds[one.kind] ?? one.kind, ", detected ", moment(one.openedAt), ". ",
        h("span", { class: "quiet" }, one.detection === "strong" ? "Detected by the upstream's precondition check." : "Detected by comparing versions, as the upstream checks no preconditions."),
        " ", h("a", { href: `#/outbox/${one.operation}` }, "Show the write")),
      one.seen ? h("p", { class: "quiet" }, "Its client had read it", one.seen.from ? ` from the ${one.seen.from}` : "",
        one.seen.version ? [" as ", h("span", { class: "mono" }, one.seen.version)] : "", ", last ", moment(one.seen.at), ".") : null,
      isOpen ? whole(one, pool) : h("p", { class: "actions" }, h("button", { class: "button", onclick: () => undo(one, pool) }, "Undo this decision")),
      h("nav", { class: "filters", "aria-label": "Kind of view" },
        [["fields", "Field by field"], ["sides", "Side by side"], ["diff", "Differences"], ...(isOpen ? [["edit", "Edit by hand"]] : [])].map(([value, name]) =>
          h("a", { href: `#/conflicts/${one.id}?show=${value}`, "aria-current": value === how ? "true" : null }, name))),
      how === "sides" ? sides(one) : how === "diff" ? differences(one) : how === "edit" && isOpen ? byHand(one, pool) : fields(one, pool),
    ];
  },
};

function whole(one, pool) {
  const choose = (resolution, words) => h("button", { class: "button", onclick: () => resolve(one, { resolution }, pool) }, words);
  return h("div", { class: "actions" }, choose("mine", one.mine === null ? "Keep mine (delete it)" : "Keep mine"),
    choose("theirs", one.theirs === null ? "Keep theirs (deleted)" : "Keep theirs"), one.mine !== null && one.theirs !== null ? choose("both", "Keep both") : null);
}

async function resolve(one, document, pool) {
  try {
    const done = await change("POST", `/v1/conflicts/${one.id}/resolve`, document);
    if (!done) return;
    drafts.delete(one.id);
    pool.say(`Resolved: ${outcomes[document.resolution]}.`);
  } catch (problem) {
    pool.say(problem.message, "bad");
  }
  pool.refresh();
}

/** Decides every listed conflict alike; each can be undone. */
async function resolveAll(resolution, items, pool) {
  const words = `${outcomes[resolution]} in ${items.length} conflicts. Every side stays readable, and each decision can be undone.`;
  if (!(await confirm(`Resolve ${items.length} conflicts?`, words[0].toUpperCase() + words.slice(1), "Resolve them", ""))) return;
  let left = 0;
  for (const one of items) {
    try {
      if (!(await change("POST", `/v1/conflicts/${one.id}/resolve`, { resolution }))) return;
    } catch {
      left += 1;
    }
  }
  pool.say(left === 0 ? `${items.length} conflicts are resolved.` : `${items.length - left} are resolved; ${left} could not be decided so.`, left === 0 ? "" : "bad");
  pool.refresh();
}

async function undo(one, pool) {
  if (!(await confirm("Undo this decision?", "The losing side is sent again, as a new write based on the current version.", "Undo it", ""))) return;
  try {
    const operation = await change("POST", `/v1/conflicts/${one.id}/undo`);
    if (operation) pool.go(`/outbox/${operation.id}`);
  } catch (problem) {
    pool.say(problem.message, "bad");
  }
}

const steps = (pointer) => pointer.split("/").slice(1).map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
const at = (document, pointer) => steps(pointer).reduce((value, step) => (value === null || typeof value !== "object" ? undefined : value[step]), document);

function put(document, pointer, value) {
  const way = steps(pointer);
  if (way.some((step) => ["__proto__", "constructor", "prototype"].includes(step))) return;
  const last = way.pop();
  const parent = way.reduce((one, step) => one?.[step], document);
  if (parent === null || typeof parent !== "object") return;
  if (value !== undefined) parent[last] = value;
  else if (Array.isArray(parent)) parent.splice(Number(last), 1);
  else delete parent[last];
}

const isUndecided = (field) => field.conflicting && field.merged === null;

/** The value of a choice. */
function chosen(one, field, choice) {
  if (choice === "merged") return field.merged;
  return at(one[choice], field.pointer);
}

function draft(one) {
  if (!drafts.has(one.id)) drafts.set(one.id, new Map(one.fields.map((field) => [field.pointer, isUndecided(field) ? null : "merged"])));
  return drafts.get(one.id);
}

function merged(one) {
  const result = structuredClone(one.theirs);
  for (const field of one.fields) put(result, field.pointer, chosen(one, field, draft(one).get(field.pointer) ?? "theirs"));
  return result;
}

function fields(one, pool) {
  if (one.fields.length === 0) return empty("No fields to compare", one.mine === null || one.theirs === null
    ? "One side deleted the entity: choose a side above." : "The sides are not JSON objects: choose one of them above.");
  const choices = draft(one), isOpen = !one.closedAt, open = one.fields.filter((field) => !choices.get(field.pointer)).length;
  return [
    h("div", { class: "fields" }, one.fields.map((field) => fieldRow(one, field, choices, isOpen, pool))),
    isOpen ? h("div", { class: "actions apply" },
      h("button", { class: "button primary", disabled: open > 0, onclick: () => resolve(one, { resolution: "merged", merged: merged(one) }, pool) }, "Apply"),
      h("p", { class: "quiet" }, open > 0 ? `${open} ${open === 1 ? "field is" : "fields are"} still to be chosen.` : "The result is sent as shown, based on theirs.")) : null,
    isOpen ? h("details", { class: "preview" }, h("summary", {}, "Merged result"), h("pre", { tabindex: 0, "aria-label": "Merged result" }, pretty(merged(one)))) : null,
  ];
}

function fieldRow(one, field, choices, isOpen, pool) {
  const name = `choice-${field.pointer}`, options = [["mine", "Mine"], ["theirs", "Theirs"]];
  const settled = !isUndecided(field) && !["mine", "theirs"].some((side) => JSON.stringify(at(one[side], field.pointer)) === JSON.stringify(field.merged));
  if (settled) options.push(["merged", "Merged"]);
  const same = !settled && !isUndecided(field) ? ["mine", "theirs"].find((side) => JSON.stringify(at(one[side], field.pointer)) === JSON.stringify(field.merged)) : null;
  const now = choices.get(field.pointer) === "merged" && same ? same : choices.get(field.pointer);
  return h("fieldset", { class: `field ${now ? "" : "open"}`, "data-key": field.pointer },
    h("legend", {}, h("code", {}, field.pointer), " ", now ? null : tag("choose", "warn")),
    h("p", { class: "was" }, h("span", { class: "side-name" }, "Base"), value(at(one.base, field.pointer))),
    h("div", { class: "options" }, options.map(([side, words]) => {
      const input = h("input", { type: "radio", name, value: side, disabled: !isOpen, onchange: () => { choices.set(field.pointer, side); pool.refresh(); } });
      input.checked = now === side;
      return h("label", { class: "option" }, h("span", { class: "side-name" }, input, words), value(chosen(one, field, side)));
    })));
}

const value = (content) => (content === undefined ? h("span", { class: "quiet value" }, "absent") : h("span", { class: "value mono" }, brief(content)));

const text = (side) => (side === null ? "" : pretty(side));

const sides = (one) => h("div", { class: "sides" }, [["Base", one.base], ["Mine", one.mine], ["Theirs", one.theirs], ...(one.merged ? [["Merged", one.merged]] : [])]
  .map(([name, side]) => h("section", { "aria-label": name }, h("h2", {}, name),
    side === null ? h("p", { class: "quiet" }, name === "Base" ? "Unknown." : "Deleted.") : h("pre", { tabindex: 0, "aria-label": name }, pretty(side)))));

function differences(one) {
  return h("div", { class: "sides" }, [["Base to mine", one.base, one.mine], ["Base to theirs", one.base, one.theirs], ["Theirs to mine", one.theirs, one.mine]]
    .map(([name, before, after]) => h("section", { "aria-label": name }, h("h2", {}, name),
      h("pre", { class: "diff", tabindex: 0, "aria-label": name }, lines(text(before), text(after)).map(({ kind, text }) => {
        const sign = { same: "  ", gone: "− ", new: "+ " }[kind];
        return h(kind === "gone" ? "del" : kind === "new" ? "ins" : "span", {}, `${sign}${text}\n`);
      })))));
}

function byHand(one, pool) {
  const area = h("textarea", { id: "merged", rows: 16, spellcheck: "false", "aria-describedby": "merged-problem" }, pretty(one.theirs === null ? one.mine : merged(one)));
  const problem = h("p", { id: "merged-problem", class: "problem", role: "alert" });
  return h("form", { "data-own": "", "data-key": one.id, onsubmit: (event) => {
    event.preventDefault();
    try {
      resolve(one, { resolution: "merged", merged: JSON.parse(area.value) }, pool);
    } catch (error) {
      problem.textContent = `This is not JSON: ${error.message}`;
    }
  } },
  h("label", { for: "merged" }, "The merged entity as JSON"), area, problem,
  h("div", { class: "actions" }, h("button", { class: "button primary" }, "Apply")));
}
