// The pages of the documentation, drawn from their Markdown. Only what our own pages use is drawn; no HTML is parsed.
import { h, table } from "./dom.js";
import { get, text } from "./api.js";

/** The parts of a line: code, links, bold and plain text. */
function inline(line, folder) {
  const parts = [];
  const pattern = /`([^`]+)`|\[([^\]]+)\]\(([^)]+)\)|\*\*([^*]+)\*\*|\*([^*]+)\*/g;
  let end = 0;
  for (const match of line.matchAll(pattern)) {
    parts.push(line.slice(end, match.index));
    const [all, code, words, target, bold, stressed] = match;
    if (code !== undefined) parts.push(h("code", {}, code));
    else if (words !== undefined) parts.push(link(inline(words, folder), target, folder));
    else if (bold !== undefined) parts.push(h("strong", {}, bold));
    else parts.push(h("em", {}, stressed));
    end = match.index + all.length;
  }
  parts.push(line.slice(end));
  return parts;
}

/** A link to another page of the documentation, or to the web. */
function link(words, target, folder) {
  if (/^https?:/.test(target)) return h("a", { href: target, rel: "noreferrer" }, words);
  const [file] = target.split("#");
  if (file === "") return words;
  if (!file.endsWith(".md")) return words;
  const steps = folder === "" ? [] : [folder];
  for (const step of file.slice(0, -3).split("/")) {
    if (step === "..") steps.pop();
    else if (step !== ".") steps.push(step);
  }
  return h("a", { href: `#/docs/${steps.join("/")}` }, words);
}

const cells = (row) => row.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));

/** The elements of a page. */
function drawn(markdown, folder) {
  const lines = markdown.split("\n");
  const elements = [];
  let at = 0;
  const until = (isEnd) => {
    const taken = [];
    while (at < lines.length && !isEnd(lines[at])) taken.push(lines[at++]);
    return taken;
  };
  while (at < lines.length) {
    const line = lines[at];
    const heading = /^(#{1,4}) (.*)$/.exec(line);
    if (line.trim() === "") at += 1;
    else if (line.startsWith("```")) {
      at += 1;
      elements.push(h("pre", { tabindex: "0" }, until((one) => one.startsWith("```")).join("\n")));
      at += 1;
    } else if (heading) {
      elements.push(h(`h${heading[1].length}`, {}, inline(heading[2], folder)));
      at += 1;
    } else if (line.startsWith("    ")) {
      elements.push(h("pre", { tabindex: "0" }, until((one) => one.trim() !== "" && !one.startsWith("    ")).map((one) => one.slice(4)).join("\n").trimEnd()));
    } else if (line.startsWith("|")) {
      const [head, , ...rows] = until((one) => !one.startsWith("|")).map(cells);
      const names = head.map((name, index) => name === "" ? `${index + 1}` : name);
      elements.push(table(names.join(", "), names.map((name, index) => ({ name, cell: (row) => inline(row.cells[index] ?? "", folder) })),
        rows.map((row, index) => ({ key: String(index), cells: row }))));
    } else if (/^[*-] /.test(line)) {
      const items = [];
      for (const one of until((next) => next.trim() === "" || !/^([*-] |  )/.test(next))) {
        if (/^[*-] /.test(one)) items.push(one.slice(2));
        else items[items.length - 1] += ` ${one.trim()}`;
      }
      elements.push(h("ul", { class: "list" }, items.map((item) => h("li", {}, inline(item, folder)))));
    } else if (/^<!--|^!\[/.test(line)) at += 1;
    else {
      const words = until((next) => next.trim() === "" || /^(#|\||```|[*-] )/.test(next));
      if (words.length === 0) words.push(lines[at++]);
      elements.push(h("p", {}, inline(words.join(" "), folder)));
    }
  }
  return elements;
}

export const docs = {
  topics: [],
  title: ({ name }) => name,
  async load({ parts }) {
    const name = parts[0];
    return { name, markdown: await text(`/v1/docs/${name.split("/").map(encodeURIComponent).join("/")}`) };
  },
  view: ({ name, markdown }) => [
    h("p", {}, h("a", { href: "#/help" }, "All pages")),
    h("article", { class: "page" }, drawn(markdown, name.includes("/") ? name.split("/")[0] : "")),
  ],
};

export const list = async () => (await get("/v1/docs")).items;
