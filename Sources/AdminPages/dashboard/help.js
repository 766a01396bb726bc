// What each page is for, the commands that do the same, and where the documentation is.
import { h, table } from "./dom.js";
import { list } from "./docs.js";

const tasks = [
  ["Why did a request miss?", "#/requests?verdict=miss", "Requests", "rockpool tail --miss"],
  ["Fix a write that was refused", "#/outbox?state=dead,parked,uncertain", "Outbox", "rockpool outbox edit ID"],
  ["Free disk space", "#/storage", "Storage", "rockpool storage-cleanup --dry-run"],
  ["Who fills the outbox?", "#/outbox", "Outbox", "rockpool outbox summary"],
  ["Go offline for a flight", "#/", "Overview", "rockpool network offline"],
  ["Decide a conflict", "#/conflicts", "Conflicts", "rockpool conflicts"],
  ["Let a program use the proxy", "#/setup", "Set up a client", "rockpool run -- PROGRAM"],
];

export const help = {
  topics: [],
  title: () => "Help",
  load: async () => ({ pages: await list().catch(() => []) }),
  view: ({ pages }, pool) => [
    h("h1", {}, "Help"),
    h("section", { "aria-labelledby": "tasks" }, h("h2", { id: "tasks" }, "Tasks"),
      table("Tasks, the page for each, and the command", [
        { name: "Task", cell: (row) => row.key },
        { name: "Page", cell: (row) => h("a", { href: row.target }, row.page) },
        { name: "Command", cell: (row) => h("code", {}, row.command) },
      ], tasks.map(([key, target, page, command]) => ({ key, target, page, command })))),
    h("section", { "aria-labelledby": "keys" }, h("h2", { id: "keys" }, "Keys"),
      h("dl", { class: "facts" }, [["Tab", "the next control; every control can be reached"], ["/", "the search field of the page"], ["Escape", "closes a dialog and changes nothing"]]
        .map(([key, words]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, words)]))),
    h("section", { "aria-labelledby": "more" }, h("h2", { id: "more" }, "Documentation"),
      h("ul", { class: "list" },
        h("li", {}, h("code", {}, "rockpool --help"), ", ", h("code", {}, "rockpool COMMAND --help"), " and ", h("code", {}, "man rockpool"), ": every command, with examples."),
        h("li", {}, h("a", { href: "/openapi.yaml" }, "The description of the admin API"), " (OpenAPI 3.1), which this page uses."),
        h("li", {}, h("a", { href: "/metrics" }, "Metrics"), " in the Prometheus text format."),
        pages.length > 0 ? null : h("li", {}, "The guides and the reference are in ", h("code", {}, "docs/"), " of the source: docs/guide, docs/reference.")),
      pages.length === 0 ? null : h("ul", { class: "list" }, pages.map((page) => h("li", {}, h("a", { href: `#/docs/${page.name}` }, page.title)))),
      h("p", { class: "quiet small" }, pool.status ? `Rockpool ${pool.status.version}` : "")),
  ],
};
