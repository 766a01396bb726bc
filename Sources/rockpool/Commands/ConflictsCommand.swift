// `rockpool conflicts`: lists, shows, resolves and undoes conflicts (docs/reference/cli.md#conflicts; docs/outbox.md#decisions).
import ArgumentParser
import RockpoolCore

struct ConflictsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "conflicts", abstract: "List, resolve and undo conflicts between queued writes and other changes.",
        discussion: """
            EXAMPLES
              rockpool conflicts                                   # open conflicts
              rockpool conflicts show ID
              rockpool conflicts resolve ID --keep mine
              rockpool conflicts undo ID  # send the losing side again
            """,
        subcommands: [List.self, Show.self, Resolve.self, Undo.self], defaultSubcommand: List.self)

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "ls", abstract: "List conflicts, the newest first; only open ones without --state.",
            discussion: .examples(
                "rockpool conflicts ls --state all",
                "rockpool conflicts ls --upstream notes"))
        @OptionGroup var options: ReadingOptions
        @Option(name: .long, help: "open, closed or all.") var state: Extent?
        @Option(name: .long, help: "Only conflicts of this upstream.", completion: Completions.upstreams) var upstream: String?
        @Option(name: .long, help: "Only conflicts of this entity, given by its path.") var entity: String?

        enum Extent: String, CaseIterable, ExpressibleByArgument { case open, closed, all }

        func run() async throws {
            var query: [String: String] = [:]
            query["state"] = state?.rawValue
            query["upstream"] = upstream
            query["entity"] = entity
            let pages = try await options.common.client().pages(of: .get("/v1/conflicts", query: query))
            try options.print(pages, as: ConflictListReport.self)
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show one conflict: base, mine and theirs of each field, with ! for those to decide, or the complete sides.",
            discussion: .examples(
                "rockpool conflicts show ID"))
        @Argument(help: "The conflict\'s id, or a part of it.", completion: Completions.conflicts, transform: CommonOptions.id) var id:
            String
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            let reply = try await options.common.client().send(.get(.conflict(id)))
            switch options.format {
            case .json: Display.output.write(reply.body.withLineEnd)
            case .table: Display.output.print(try ConflictView(reply))
            }
        }
    }

    struct Resolve: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Resolve a conflict: keep one side or both, or give a merged document. All sides stay readable.",
            discussion: .examples(
                "rockpool conflicts resolve ID --keep mine",
                "rockpool conflicts resolve --all --keep theirs --upstream notes",
                "rockpool conflicts resolve ID --merged merged.json"))
        @Argument(help: "The conflict\'s id, or a part of it.", completion: Completions.conflicts, transform: CommonOptions.id) var id:
            String?
        @Flag(name: .long, help: "Every open conflict, in place of one.") var all = false
        @Option(name: .long, help: "With --all: only conflicts of this upstream.", completion: Completions.upstreams) var upstream: String?
        @Option(name: .long, help: "The side to keep: mine, theirs, or both as separate entities.") var keep: Side?
        @Option(name: .long, help: "A JSON document with the complete merged entity; - is stdin.", completion: .file(extensions: ["json"]))
        var merged: String?
        @OptionGroup var common: CommonOptions

        enum Side: String, CaseIterable, ExpressibleByArgument { case mine, theirs, both }

        func validate() throws {
            if all == (id != nil) { throw ValidationError("give the id of a conflict, or --all") }
            if all, keep == nil { throw ValidationError("--all takes the side to keep with --keep") }
            if upstream != nil, !all { throw ValidationError("--upstream goes with --all") }
            if (keep == nil) == (merged == nil) {
                throw ValidationError("give the side to keep with --keep, or a merged document with --merged")
            }
        }

        func run() async throws {
            guard let id else { return try await resolveAll() }
            let conflict = try await resolve(id, by: common.client())
            let line = "\(id) is resolved: \(conflict.outcome); follow it with: rockpool outbox show \(conflict.operation)"
            Display.output.print(line.inOneLine)
        }

        /// Decides every open conflict alike. One that cannot be is said, and the others are decided.
        private func resolveAll() async throws {
            struct Found: Decodable { var id: String }
            struct Page: Decodable { var items: [Found] }
            var query = ["state": "open"]
            query["upstream"] = upstream
            let client = try common.client()
            let found = try await client.pages(of: .get("/v1/conflicts", query: query)).decoded(as: Page.self).items
            var left = 0
            for conflict in found {
                do {
                    let resolved = try await resolve(conflict.id, by: client)
                    Display.output.print("\(conflict.id) is resolved: \(resolved.outcome)".inOneLine)
                } catch let failure as AdminFailure {
                    left += 1
                    Display.error.print("rockpool: \(conflict.id): \(failure)".inOneLine)
                }
            }
            Display.output.print(
                "\(found.count - left) of \(found.count) open conflicts are resolved; undo one with: rockpool conflicts undo ID")
            if left > 0 { throw CommandFailure(.failed, left.counted("conflict stays", "conflicts stay") + " open") }
        }

        private func resolve(_ id: String, by client: AdminClient) async throws -> ConflictReport {
            var choice: JSONValue = ["resolution": .string(keep?.rawValue ?? "merged")]
            choice["merged"] = try merged.map { try EditDocument.parse(try InputFile.contents(of: $0), name: $0) }
            var call = AdminCall.post(.conflict(id, verb: "resolve"))
            call.json = String(decoding: choice.serialized(), as: UTF8.self)
            return try await client.send(call).decoded(as: ConflictReport.self)
        }
    }

    struct Undo: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Send the losing side again, as a new operation based on the current version.",
            discussion: .examples(
                "rockpool conflicts undo ID"))
        @Argument(help: "The conflict\'s id, or a part of it.", completion: Completions.conflicts, transform: CommonOptions.id) var id:
            String
        @Option(name: .long, help: "The side to restore after a merge: mine or theirs.") var side: Side?
        @OptionGroup var common: CommonOptions

        enum Side: String, CaseIterable, ExpressibleByArgument { case mine, theirs }

        func run() async throws {
            var call = AdminCall.post(.conflict(id, verb: "undo"))
            call.query["side"] = side?.rawValue
            let operation = try await common.client().send(call).decoded(as: OperationReport.self)
            Display.output.print("the losing side of \(id) is sent again by \(operation.id)".inOneLine)
        }
    }
}

extension String {
    /// The path of one conflict, or of an action on it.
    fileprivate static func conflict(_ id: String, verb: String? = nil) -> String {
        "/v1/conflicts/" + AdminCall.segment(id) + (verb.map { "/\($0)" } ?? "")
    }
}

/// A complete conflict for display: its fields side by side, or both sides if it has no fields (docs/reference/admin-api.md#conflicts).
struct ConflictView {
    let report: ConflictReport
    /// Parsed with our own parser: Foundation's numbers lose digits, and conflicts may differ in digits only.
    let document: JSONValue

    /// - Parameter reply: the reply of `GET /v1/conflicts/{id}`.
    init(_ reply: AdminReply) throws {
        report = try reply.decoded()
        do {
            // The sides are nested in the document: it may be three levels deeper and longer than one of them.
            document = try JSONValue.parse(Array(reply.body), sizeLimit: .max, depthLimit: JSONValue.depthLimit + 3)
        } catch {
            throw CommandFailure(.failed, "the server's response cannot be read: \(error)")
        }
    }

    /// The differing fields; `!` marks those that wait for a decision: both sides changed them, and no rule has merged them.
    var fields: TextTable {
        TextTable(
            columns: [.text(""), .text("FIELD"), .text("BASE"), .text("MINE"), .text("THEIRS"), .text("MERGED")],
            rows: (document["fields"]?.array ?? []).map { field in
                let isUndecided = field["conflicting"]?.bool == true && field["merged"]?.isNull != false
                return [isUndecided ? .init("!", .warning) : "", .init(field["pointer"]?.string ?? "")]
                    + ["base", "mine", "theirs", "merged"].map { .init(Self.text(of: field[$0])) }
            })
    }

    /// The complete sides, each under its name, if there are no fields to compare.
    var sides: [String] {
        guard fields.rows.isEmpty else { return [] }
        return ["base", "mine", "theirs", "merged"].map { name in
            guard let side = document[name], !side.isNull else { return "\(name): –" }
            let lines = (side.string ?? side.indented()).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
            return ([name + ":"] + lines.map { "  " + String($0).inOneLine }).joined(separator: "\n")
        }
    }

    private static func text(of value: JSONValue?) -> String {
        guard let value, !value.isNull else { return "–" }
        return String(decoding: value.serialized(), as: UTF8.self)
    }
}

extension Display {
    func print(_ conflict: ConflictView) {
        print(conflict.report.tables + [conflict.fields])
        if let seen = OperationView.seen(in: conflict.document) { print("\n" + seen.inOneLine) }
        for side in conflict.sides { print("\n" + side) }
        if let advice = conflict.report.advice { print("\n" + advice.inOneLine) }
    }
}
