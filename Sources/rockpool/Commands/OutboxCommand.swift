// `rockpool outbox`: lists, edits, retries, cancels and exports queued writes (docs/reference/cli.md#outbox; outbox.md).
import ArgumentParser
import Glibc
import RockpoolCore

struct OutboxCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "outbox", abstract: "List, edit, retry, cancel and export queued writes.",
        subcommands: [List.self, Show.self, Retry.self, Edit.self, Cancel.self, Discard.self, Flush.self, Export.self],
        defaultSubcommand: List.self)

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "ls", abstract: "List operations; only open ones without --state.")
        @OptionGroup var options: ReadingOptions
        @Option(name: .long, help: "A state, several separated by commas, or all.")
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
            let call = AdminCall.get("/v1/operations", query: query)
            let pages = try await options.common.withStores(having: { access($0.stateDir + "/data.sqlite", F_OK) == 0 }) {
                try await $0.pages(of: call)
            }
            try options.print(pages, as: OperationListReport.self)
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show one operation: its request, the reason why it waits, and every attempt.")
        @Argument(help: "The operation\'s id.", transform: CommonOptions.id) var id: String
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            try options.print(try await options.common.client().send(.get(.operation(id))), as: OperationReport.self)
        }
    }

    struct Retry: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Retry one operation now, or all of a lane.")
        @Argument(help: "The operation\'s id.", transform: CommonOptions.id) var id: String?
        @Option(
            name: .long,
            help: "All pending, parked, dead and conflicted operations of this lane; uncertain ones are retried by id only.")
        var lane: String?
        @Flag(name: .long, help: "Also what an upstream holds back by Retry-After.") var now = false
        @OptionGroup var common: CommonOptions

        func validate() throws {
            if (id == nil) == (lane == nil) { throw ValidationError("give the id of an operation, or a lane with --lane") }
        }

        func run() async throws {
            let client = try common.client()
            if let id {
                var call = AdminCall.post(.operation(id, verb: "retry"))
                call.query["now"] = now ? "true" : nil
                return try await OutboxCommand.change(through: client, call: call, id: id, said: "will be retried")
            }
            var call = AdminCall.post("/v1/operations/retry")
            call.query["now"] = now ? "true" : nil
            call.query["lane"] = lane
            let report = try await client.send(call).decoded(as: LaneRetryReport.self)
            for line in report.lines(lane: lane ?? "") { Display.output.print(line.inOneLine) }
        }
    }

    struct Flush: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Send all pending operations now, before their next attempt is due.")
        @Flag(name: .long, help: "Also what an upstream holds back by Retry-After.") var now = false
        @OptionGroup var common: CommonOptions

        func run() async throws {
            struct Flushed: Decodable { var held: [HeldReport]? }
            let client = try common.client()
            var call = AdminCall.post("/v1/operations/flush")
            call.query["now"] = now ? "true" : nil
            let reply = try await Waiting.on("sending") { [call] in try await client.send(call, timeout: .minutes(10)) }
            Display.output.print("the outbox is being sent")
            for held in try reply.decoded(as: Flushed.self).held ?? [] { Display.output.print(held.line.inOneLine) }
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
