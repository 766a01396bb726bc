// `rockpool conflicts`: two changes that met, and what a person decides about them (contract §1, §4; outbox.md §1.6).
import ArgumentParser
import RockpoolCore

struct ConflictsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "conflicts", abstract: "Writes that met another change: which side is to stand.",
        discussion: """
            EXAMPLES
              rockpool conflicts                                   # what waits for you
              rockpool conflicts show ID
              rockpool conflicts resolve ID --keep mine
              rockpool conflicts show ID --format json | jq '.mine * {tags: .theirs.tags}' | rockpool conflicts resolve ID --merged -
              rockpool conflicts undo ID                           # the side that lost, written again
            """,
        subcommands: [List.self, Show.self, Resolve.self, Undo.self], defaultSubcommand: List.self)

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "ls", abstract: "List conflicts, the newest first: those that wait for you unless --state says more.")
        @OptionGroup var options: ReadingOptions
        @Option(name: .long, help: "Which: open, closed or all.") var state: Extent?
        @Option(name: .long, help: "Only those of this upstream.") var upstream: String?
        @Option(name: .long, help: "Only those of this entity, by its path.") var entity: String?

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
            abstract: "Show one conflict: its fields on both sides, ! where both changed one differently, or both sides whole.")
        @Argument(help: "The conflict\'s id.", transform: CommonOptions.id) var id: String
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
            abstract: "Decide a conflict: one side, both of them, or a merge of your own. All of them stay readable.")
        @Argument(help: "The conflict\'s id.", transform: CommonOptions.id) var id: String
        @Option(name: .long, help: "Which side stands: mine, theirs, or both, each as an entity of its own.") var keep: Side?
        @Option(name: .long, help: "A JSON document, the whole entity as it is to be; - is stdin.", completion: .file(extensions: ["json"]))
        var merged: String?
        @OptionGroup var common: CommonOptions

        enum Side: String, CaseIterable, ExpressibleByArgument { case mine, theirs, both }

        func validate() throws {
            if (keep == nil) == (merged == nil) {
                throw ValidationError("say which side stands with --keep, or give a merge with --merged")
            }
        }

        func run() async throws {
            var choice: JSONValue = ["resolution": .string(keep?.rawValue ?? "merged")]
            choice["merged"] = try merged.map { try EditDocument.parse(try InputFile.contents(of: $0), name: $0) }
            var call = AdminCall.post(.conflict(id, "resolve"))
            call.json = String(decoding: choice.serialized(), as: UTF8.self)
            let conflict = try await common.client().send(call).decoded(as: ConflictReport.self)
            let line = "\(id) is resolved: \(conflict.outcome); what becomes of it: rockpool outbox show \(conflict.operation)"
            Display.output.print(line.inOneLine)
        }
    }

    struct Undo: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Write the side that lost again, as a new operation on top of what stands now.")
        @Argument(help: "The conflict\'s id.", transform: CommonOptions.id) var id: String
        @OptionGroup var common: CommonOptions

        func run() async throws {
            let operation = try await common.client().send(.post(.conflict(id, "undo"))).decoded(as: OperationReport.self)
            Display.output.print("the side that lost in \(id) is written again by \(operation.id)".inOneLine)
        }
    }
}

extension String {
    /// The path of one conflict, or of something to do with it.
    fileprivate static func conflict(_ id: String, _ verb: String? = nil) -> String {
        "/v1/conflicts/" + AdminCall.segment(id) + (verb.map { "/\($0)" } ?? "")
    }
}
