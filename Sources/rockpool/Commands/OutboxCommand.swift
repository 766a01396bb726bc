// `rockpool outbox`: the writes that wait, and what a person can do about them (contract §1, §4; outbox.md).
import ArgumentParser
import RockpoolCore

struct OutboxCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "outbox", abstract: "The queued writes.",
        subcommands: [List.self, Show.self, Retry.self, Discard.self, Cancel.self, Flush.self], defaultSubcommand: List.self)

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "ls", abstract: "List operations, those still open unless --state says more.")
        @OptionGroup var options: ReadingOptions
        @Option(name: .long, help: "A state, several with commas, or all.")
        var state: String?
        @Option(name: .long, help: "Only this lane.")
        var lane: String?

        func run() async throws {
            var query: [String: String] = [:]
            query["state"] = state
            query["lane"] = lane
            let pages = try await options.common.client().pages(of: .get("/v1/operations", query: query))
            try options.print(pages, as: OperationListReport.self)
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show one operation.")
        @Argument(help: "The operation's id.") var id: String
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            try options.print(try await options.common.client().send(.get(.operation(id))), as: OperationReport.self)
        }
    }

    struct Retry: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Try one operation again now, or those of a lane.")
        @Argument(help: "The operation's id.") var id: String?
        @Option(name: .long, help: "Every operation of this lane that waits, is parked or dead; uncertain ones are retried by id only.")
        var lane: String?
        @OptionGroup var common: CommonOptions

        func validate() throws {
            if (id == nil) == (lane == nil) { throw ValidationError("name one operation, or a lane with --lane") }
        }

        func run() async throws {
            let client = try common.client()
            if let id { return try await OutboxCommand.change(client, .post(.operation(id, "retry")), id, said: "will be tried again") }
            let query = ["lane": lane ?? "", "state": "pending,parked,dead"]
            let open = try await client.pages(of: .get("/v1/operations", query: query)).decoded(as: OperationListReport.self)
            if open.items.isEmpty { Display.output.print("nothing to retry in lane \(lane ?? "")".inOneLine) }
            for operation in open.items {
                try await OutboxCommand.change(client, .post(.operation(operation.id, "retry")), operation.id, said: "will be tried again")
            }
        }
    }

    struct Discard: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Give an operation up; it stays readable as cancelled.")
        @Argument(help: "The operation's id.") var id: String
        @OptionGroup var common: CommonOptions

        func run() async throws {
            try await OutboxCommand.change(try common.client(), .delete(.operation(id)), id, said: "is discarded")
        }
    }

    struct Cancel: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Take back an operation that was not sent yet.")
        @Argument(help: "The operation's id.") var id: String
        @OptionGroup var common: CommonOptions

        func run() async throws {
            try await OutboxCommand.change(try common.client(), .post(.operation(id, "cancel")), id, said: "is cancelled")
        }
    }

    struct Flush: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Send everything that may go now, instead of at its time.")
        @OptionGroup var common: CommonOptions

        func run() async throws {
            let client = try common.client()
            _ = try await Waiting.on("sending") { try await client.send(.post("/v1/operations/flush"), timeout: .minutes(10)) }
            Display.output.print("the outbox is being sent")
        }
    }

    /// Sends a change and says what has become of the operation.
    private static func change(_ client: AdminClient, _ call: AdminCall, _ id: String, said: String) async throws {
        _ = try await client.send(call)
        Display.output.print("\(id) \(said)".inOneLine)
    }
}

extension String {
    /// The path of one operation, or of something to do with it.
    fileprivate static func operation(_ id: String, _ verb: String? = nil) -> String {
        "/v1/operations/" + AdminCall.segment(id) + (verb.map { "/\($0)" } ?? "")
    }
}
