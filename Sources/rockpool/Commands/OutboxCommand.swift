// `rockpool outbox`: the writes that wait, and what a person can do about them (contract §1, §4; outbox.md).
import ArgumentParser
import RockpoolCore

struct OutboxCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "outbox", abstract: "The queued writes.",
        subcommands: [List.self, Show.self, Retry.self, Edit.self, Cancel.self, Discard.self, Flush.self, Export.self],
        defaultSubcommand: List.self)

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "ls", abstract: "List operations, those still open unless --state says more.")
        @OptionGroup var options: ReadingOptions
        @Option(name: .long, help: "A state, several with commas, or all.")
        var state: String?
        @Option(name: .long, help: "Only this lane.")
        var lane: String?

        func validate() throws {
            let known = OperationState.allCases.map(\.rawValue) + ["all"]
            for word in (state ?? "all").split(separator: ",", omittingEmptySubsequences: false) where !known.contains(String(word)) {
                throw ValidationError("\"\(word)\" is not one of \(known.joined(separator: ", "))")
            }
        }

        func run() async throws {
            var query: [String: String] = [:]
            query["state"] = state
            query["lane"] = lane
            let pages = try await options.common.client().pages(of: .get("/v1/operations", query: query))
            try options.print(pages, as: OperationListReport.self)
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show one operation: its request, what it waits for, and every attempt to send it.")
        @Argument(help: "The operation\'s id.", transform: CommonOptions.id) var id: String
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            try options.print(try await options.common.client().send(.get(.operation(id))), as: OperationReport.self)
        }
    }

    struct Retry: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Try one operation again now, or those of a lane.")
        @Argument(help: "The operation\'s id.", transform: CommonOptions.id) var id: String?
        @Option(
            name: .long,
            help: "Every operation of this lane that waits, is parked, dead or in conflict; uncertain ones are retried by id only.")
        var lane: String?
        @OptionGroup var common: CommonOptions

        func validate() throws {
            if (id == nil) == (lane == nil) { throw ValidationError("name one operation, or a lane with --lane") }
        }

        func run() async throws {
            let client = try common.client()
            if let id { return try await OutboxCommand.change(client, .post(.operation(id, "retry")), id, said: "will be tried again") }
            var call = AdminCall.post("/v1/operations/retry")
            call.query["lane"] = lane
            let report = try await client.send(call).decoded(as: LaneRetryReport.self)
            for line in report.lines(lane: lane ?? "") { Display.output.print(line.inOneLine) }
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

    /// Sends a change and says what has become of the operation, and what could not be promised.
    static func change(_ client: AdminClient, _ call: AdminCall, _ id: String, said: String) async throws {
        struct Changed: Decodable { var warning: String? }
        let reply = try await client.send(call)
        Display.output.print("\(id) \(said)".inOneLine)
        if !reply.body.isEmpty, let warning = try reply.decoded(as: Changed.self).warning {
            Display.error.print("rockpool: warning: \(warning)".inOneLine)
        }
    }
}

/// What `POST /v1/operations/retry` did.
struct LaneRetryReport: Decodable, Equatable {
    var retried: [String]
    var uncertain: [String]

    func lines(lane: String) -> [String] {
        if retried.isEmpty, uncertain.isEmpty { return ["nothing to retry in lane \(lane)"] }
        return retried.map { "\($0) will be tried again" }
            + uncertain.map { "\($0) is left alone: it may have taken effect; retry it by its id if it may do so twice" }
    }
}

extension String {
    /// The path of one operation, or of something to do with it.
    static func operation(_ id: String, _ verb: String? = nil) -> String {
        "/v1/operations/" + AdminCall.segment(id) + (verb.map { "/\($0)" } ?? "")
    }
}
