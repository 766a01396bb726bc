// `rockpool sync` and `rockpool entities`: push and pull now, the sync log, and the state of each resource (docs/reference/cli.md#sync).
import ArgumentParser
import Foundation
import RockpoolCore

struct SyncCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sync", abstract: "Send and fetch changes now, or show the log.",
        discussion: """
            EXAMPLES
              rockpool sync
              rockpool sync log --limit 20
            """,
        shouldDisplay: false, subcommands: [Now.self, Push.self, Pull.self, Log.self], defaultSubcommand: Now.self)

    struct Now: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Send what waits, fetch changes, and list the conflicts that need a decision; exits 1 if a fetch fails.",
            discussion: .examples(
                "rockpool sync now"))
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            let client = try options.common.client()
            let pushed = try await Waiting.on("sending") { try await client.send(.post("/v1/sync/push"), timeout: .minutes(10)) }
            let pulled = try await Waiting.on("fetching") { try await client.send(.post("/v1/sync/pull"), timeout: .minutes(10)) }
            let open = try await client.pages(of: .get("/v1/conflicts", query: ["limit": "1000"]))
            let document: JSONValue = [
                "push": try JSONValue.parse(Array(pushed.body)), "pull": try JSONValue.parse(Array(pulled.body)),
                "conflicts": try JSONValue.parse(Array(open.body)),
            ]
            try options.print(AdminReply(status: 200, body: Data(document.serialized())), as: SyncedReport.self)
            try Pull.check(pulled)
        }
    }

    struct Push: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Send all pending operations, and report the deliveries.",
            discussion: .examples(
                "rockpool sync push"))
        @Flag(name: .long, help: "Also what an upstream holds back by Retry-After.") var now = false
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            let client = try options.common.client()
            var call = AdminCall.post("/v1/sync/push")
            call.query["now"] = now ? "true" : nil
            let reply = try await Waiting.on("sending") { [call] in try await client.send(call, timeout: .minutes(10)) }
            try options.print(reply, as: PushedReport.self)
        }
    }

    struct Pull: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Fetch the upstream's changes of every resource with delta or sync; exits 1 if one cannot be fetched.",
            discussion: .examples(
                "rockpool sync pull"))
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            let client = try options.common.client()
            let reply = try await Waiting.on("fetching") { try await client.send(.post("/v1/sync/pull"), timeout: .minutes(10)) }
            try options.print(reply, as: PulledReport.self)
            try Self.check(reply)
        }

        /// Throws a failure with the first resource that could not be fetched.
        fileprivate static func check(_ reply: AdminReply) throws {
            let failed = try reply.decoded(as: PulledReport.self).items.filter { $0.error != nil }
            if let first = failed.first { throw CommandFailure(.failed, "\(first.upstream) \(first.resource): \(first.error ?? "")") }
        }
    }

    struct Log: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the log of operations, the newest first.",
            discussion: .examples(
                "rockpool sync log --limit 20"))
        @OptionGroup var options: ReadingOptions
        @Option(name: .long, help: "The most items to list, from 1 to 1000.") var limit = 100

        func validate() throws {
            if !(1...1000).contains(limit) { throw ValidationError("--limit is a number from 1 to 1000") }
        }

        func run() async throws {
            let call = AdminCall.get("/v1/sync/log", query: ["limit": String(limit)])
            try options.print(try await options.common.client().send(call), as: SyncLogReport.self)
        }
    }
}

/// `rockpool entities` (docs/reference/cli.md).
struct EntitiesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "entities", abstract: "List declared resources: cached and upstream entities, pending writes, conflicts, last pull.",
        discussion: .examples(
            "rockpool entities"), shouldDisplay: false)
    @OptionGroup var options: ReadingOptions

    func run() async throws {
        try options.print(try await options.common.client().pages(of: .get("/v1/entities")), as: EntitiesReport.self)
    }
}
