// `rockpool outbox`: lists, edits, retries, cancels and exports queued writes (docs/reference/cli.md#outbox; outbox.md).
import ArgumentParser
import Glibc
import RockpoolCore

struct OutboxCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "outbox", abstract: "List, edit, retry, cancel and export queued writes.",
        discussion: .examples(
            "rockpool outbox                                      # what waits, and why",
            "rockpool outbox summary                              # who fills it",
            "rockpool outbox show ID  # request, answer, attempts",
            "rockpool outbox retry ID"),
        subcommands: [
            List.self, Summary.self, Show.self, Retry.self, Repeat.self, Edit.self, Cancel.self, Discard.self, Flush.self, Export.self,
            Import.self, Migrate.self,
        ],
        defaultSubcommand: List.self)

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "ls", abstract: "List operations; only open ones without --state.",
            discussion: """
                EXAMPLES
                  rockpool outbox ls --state dead,conflicted --older-than 1h
                  rockpool outbox ls --upstream notes --method PUT --path /v1/notes/ --limit 20
                """)
        @OptionGroup var options: ReadingOptions
        @OptionGroup var selection: OutboxSelection
        @Option(name: .long, help: "At most this many, the oldest first.") var limit: Int?

        func validate() throws {
            if let limit, limit < 1 { throw ValidationError("--limit takes a number from 1") }
        }

        func run() async throws {
            var call = AdminCall.get("/v1/operations", query: selection.query)
            if let limit { call.query["limit"] = String(min(limit, 1000)) }
            let pages = try await options.common.withStores(having: { access($0.stateDir + "/data.sqlite", F_OK) == 0 }) { [call] client in
                limit == nil ? try await client.pages(of: call) : try await client.send(call)
            }
            try options.print(pages, as: OperationListReport.self)
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show one operation: its request, the reason why it waits, and every attempt.",
            discussion: .examples(
                "rockpool outbox show ID",
                "rockpool outbox show ID --format json"))
        @Argument(help: "The operation\'s id, or a part of it.", completion: Completions.operations, transform: CommonOptions.id) var id:
            String
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            let reply = try await options.common.withStores(having: { access($0.stateDir + "/data.sqlite", F_OK) == 0 }) { client in
                try await client.send(.get(.operation(id)))
            }
            switch options.format {
            case .json: Display.output.write(reply.body.withLineEnd)
            case .table: Display.output.print(try OperationView(reply))
            }
        }
    }

    struct Retry: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Retry one operation now, all of a lane, what was refused, or all that are selected.",
            discussion: """
                A refused operation is sent under a new key. Uncertain ones are retried by id or by state only.

                EXAMPLES
                  rockpool outbox retry ID        # the beginning or end of an id is enough
                  rockpool outbox retry --reason rejected --since 10m
                  rockpool outbox retry --state dead --upstream notes --yes
                """)
        @Argument(help: "The operation\'s id, or a part of it.", completion: Completions.operations, transform: CommonOptions.id) var id:
            String?
        @Option(
            name: .long,
            help: "All pending, parked, dead and conflicted operations of this lane; uncertain ones are retried by id only.")
        var lane: String?
        @Option(name: .long, help: "Only what was refused or given up for this reason, such as rejected.") var reason: String?
        @Option(name: .long, help: "Only what was refused since then: a duration such as 10m, or a time of RFC 3339.") var since: String?
        @Flag(name: .long, help: "Also what an upstream holds back by Retry-After.") var now = false
        @OptionGroup var bulk: OutboxBulk
        @OptionGroup var common: CommonOptions

        func validate() throws {
            let isSelected = lane != nil || reason != nil || since != nil
            guard [id != nil, isSelected, bulk.isUsed].count(where: \.self) == 1 else {
                throw ValidationError("give the id of an operation, or --lane, --reason or --since, or --state")
            }
            guard reason == nil || reason.flatMap(OperationReason.init) != nil else {
                throw ValidationError("--reason takes \(OperationReason.allCases.map(\.rawValue).joined(separator: ", "))")
            }
            guard since.map({ RFC3339.parse($0) != nil || (try? TimeSpan(parsing: $0)) != nil }) != false else {
                throw ValidationError("--since takes a duration such as 10m, or a time of RFC 3339")
            }
        }

        func run() async throws {
            let client = try common.client()
            if bulk.isUsed {
                let query = now ? ["now": "true"] : [:]
                return try await bulk.run(verb: "retry", through: client) {
                    AdminCall(method: "POST", path: .operation($0, verb: "retry"), query: query)
                }
            }
            if let id {
                var call = AdminCall.post(.operation(id, verb: "retry"))
                call.query["now"] = now ? "true" : nil
                try await OutboxCommand.change(through: client, call: call, id: id, said: "will be retried")
                let retried = try await Waiting.on("sending") { try await Self.outcome(of: id, through: client) }
                return Display.output.print(retried.outcome.inOneLine)
            }
            var call = AdminCall.post("/v1/operations/retry")
            call.query["now"] = now ? "true" : nil
            call.query["lane"] = lane
            call.query["reason"] = reason
            call.query["since"] = since
            let report = try await client.send(call).decoded(as: LaneRetryReport.self)
            for line in report.lines(of: lane.map { "lane \($0)" } ?? "the selection") { Display.output.print(line.inOneLine) }
        }

        /// Returns the operation as soon as it has an answer, or as it is after three seconds.
        private static func outcome(of id: String, through client: AdminClient) async throws -> OperationReport {
            let clock = ContinuousClock()
            let end = clock.now + .seconds(3)
            while true {
                let operation: OperationReport = try await client.send(.get(.operation(id))).decoded()
                if !["pending", "inflight"].contains(operation.state) || clock.now >= end { return operation }
                try await clock.sleep(for: .milliseconds(100))
            }
        }
    }

    struct Repeat: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make the counted repeats of an operation operations of their own.",
            discussion: .examples(
                "rockpool outbox repeat ID",
                after: "Equal requests within 10 s that were answered 202 are one operation; outbox show says how many."))
        @Argument(help: "The operation\'s id, or a part of it.", completion: Completions.operations, transform: CommonOptions.id) var id:
            String
        @OptionGroup var common: CommonOptions

        func run() async throws {
            let reply = try await common.client().send(.post(.operation(id, verb: "repeat")))
            let made = try reply.decoded(as: OperationListReport.self).items
            for operation in made { Display.output.print("\(operation.id) is a repeat of \(id), sent like any other".inOneLine) }
        }
    }

    struct Flush: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Send all pending operations now, before their next attempt is due.",
            discussion: .examples(
                "rockpool outbox flush",
                "rockpool outbox flush --now"))
        @Flag(name: .long, help: "Also what an upstream holds back by Retry-After.") var now = false
        @OptionGroup var common: CommonOptions

        func run() async throws {
            struct Flushed: Decodable {
                var flushed: Int
                var held: [HeldReport]?
            }
            let client = try common.client()
            var call = AdminCall.post("/v1/operations/flush")
            call.query["now"] = now ? "true" : nil
            let reply = try await Waiting.on("sending") { [call] in try await client.send(call, timeout: .minutes(10)) }
            let report = try reply.decoded(as: Flushed.self)
            let held = report.held ?? []
            if report.flushed > 0 || held.isEmpty {
                let count = "\(report.flushed) due now; rockpool outbox shows what they wait for"
                Display.output.print(report.flushed == 0 ? "nothing waits" : count)
            }
            for held in held { Display.output.print(held.line.inOneLine) }
        }
    }

    /// Sends a change, then prints the new state of the operation and any warning.
    static func change(through client: AdminClient, call: AdminCall, id: String, said: String) async throws {
        struct Changed: Decodable { var warning: String? }
        let reply = try await client.send(call)
        Display.output.print("\(id) \(said)".inOneLine)
        if !reply.body.isEmpty, let warning = try reply.decoded(as: Changed.self).warning {
            Display.error.print("rockpool: warning: \(warning)".inOneLine)
        }
    }
}

extension String {
    /// The path of one operation, or of an action on it.
    static func operation(_ id: String, verb: String? = nil) -> String {
        "/v1/operations/" + AdminCall.segment(id) + (verb.map { "/\($0)" } ?? "")
    }
}
