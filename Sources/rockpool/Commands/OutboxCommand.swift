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

/// `rockpool outbox summary`: who fills the outbox (docs/reference/cli.md#outbox-summary).
extension OutboxCommand {
    struct Summary: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show who fills the outbox: writes by upstream, client, method, path and state, the most bytes first.",
            discussion: .examples(
                "rockpool outbox summary", "rockpool outbox summary --state all --format json",
                after: """
                    Ids within paths are shown as *. Without --state it counts what waits and what failed. PROGRAM is the User-Agent of one \
                    of them. CLIENT is the identity made from a credential, as in rockpool identities ls; – is without one.
                    """))
        @OptionGroup var selection: OutboxSelection
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            let call = AdminCall.get("/v1/operations", query: selection.query)
            let reply = try await options.common.withStores(having: { access($0.stateDir + "/data.sqlite", F_OK) == 0 }) {
                try await $0.pages(of: call)
            }
            let summary = OutboxSummary(of: try reply.decoded(as: OperationListReport.self).items)
            switch options.format {
            case .json: Display.output.print(String(decoding: try summary.encoded, as: UTF8.self))
            case .table: Display.output.print(summary)
            }
        }
    }
}

/// `--state` and the other options that select operations for a list (docs/reference/cli.md#outbox-ls).
struct OutboxSelection: ParsableArguments {
    @Option(name: .long, help: "A state, several separated by commas, or all.", completion: Completions.states) var state: String?
    @Option(name: .long, help: "Only this lane.") var lane: String?
    @Option(name: .long, help: "Only writes to this upstream.", completion: Completions.upstreams) var upstream: String?
    @Option(name: .long, help: "Only writes with this method.") var method: String?
    @Option(name: .long, help: "Only writes whose path and query contain this text.") var path: String?
    @Option(name: .long, help: "Only writes that were accepted longer ago, such as 1h.", transform: TimeSpan.argument)
    var olderThan: TimeSpan?

    func validate() throws { try Self.check(state ?? "all") }

    /// The query of the admin API that selects the same.
    var query: [String: String] {
        var query: [String: String] = [:]
        query["state"] = state
        query["lane"] = lane
        query["upstream"] = upstream
        query["method"] = method
        query["path"] = path
        query["olderThanSeconds"] = olderThan.map { String($0.seconds) }
        return query
    }

    /// Checks the words of `--state`.
    static func check(_ states: String) throws {
        let known = OperationState.allCases.map(\.rawValue) + ["all"]
        for word in states.split(separator: ",", omittingEmptySubsequences: false) where !known.contains(String(word)) {
            throw ValidationError("\"\(word)\" is not one of \(known.joined(separator: ", "))")
        }
    }
}

/// `--state`, `--upstream` and `--yes` of the commands that change many operations at once.
struct OutboxBulk: ParsableArguments {
    @Option(
        name: .long, help: "All operations in this state, or in several separated by commas, after a question.",
        completion: Completions.states) var state: String?
    @Option(name: .long, help: "With --state: only writes to this upstream.", completion: Completions.upstreams) var upstream: String?
    @Flag(name: .long, help: "With --state: change them without a question.") var yes = false

    var isUsed: Bool { state != nil }

    func validate() throws {
        if let state { try OutboxSelection.check(state) }
        if state == nil, upstream != nil || yes { throw ValidationError("--upstream and --yes need --state") }
    }

    /// Asks, then makes one call for each selected operation. A refusal is printed, and the others go on.
    /// - Throws: `CommandFailure` without a yes, or if an operation could not be changed.
    func run(verb: String, through client: AdminClient, call: (String) -> AdminCall) async throws {
        var query: [String: String] = [:]
        query["state"] = state
        query["upstream"] = upstream
        let found = try await client.pages(of: .get("/v1/operations", query: query)).decoded(as: OperationListReport.self).items
        guard !found.isEmpty else { return Display.output.print("no operations") }
        if !yes {
            let subject = found.count.counted("operation")
            for operation in found.prefix(5) { Display.error.print("  \(operation.id)  \(operation.method) \(operation.url)".inOneLine) }
            if found.count > 5 { Display.error.print("  … and \(found.count - 5) more") }
            guard isatty(STDIN_FILENO) == 1, Display.error.isTerminal else {
                throw CommandFailure(.failed, "nothing has changed; add --yes to \(verb) \(subject)")
            }
            Display.error.write("\(verb) \(subject)? [y/N] ")
            guard ["y", "yes"].contains(readLine()?.lowercased()) else { throw CommandFailure(.failed, "nothing has changed") }
        }
        var done = 0
        for operation in found {
            do {
                _ = try await client.send(call(operation.id))
                done += 1
            } catch let failure as AdminFailure {
                Display.error.print("rockpool: \(operation.id): \(failure)".inOneLine)
            }
        }
        Display.output.print("\(verb): \(done) of \(found.count)")
        if done < found.count { throw CommandFailure(.failed, "\(found.count - done) could not be changed; rockpool outbox ls shows them") }
    }
}

/// A complete operation for display: the facts, every attempt, the request and the answer (docs/reference/cli.md#outbox-show).
struct OperationView {
    /// The most lines of a body; the rest is left to `--format json`.
    private static let bodyLines = 40

    let report: OperationReport
    /// Parsed with our own parser, which keeps the digits of numbers and the order of members.
    let document: JSONValue

    /// - Parameter reply: the reply of `GET /v1/operations/{id}`.
    init(_ reply: AdminReply) throws {
        report = try reply.decoded()
        do {
            document = try JSONValue.parse(Array(reply.body), sizeLimit: .max, depthLimit: JSONValue.depthLimit + 3)
        } catch {
            throw CommandFailure(.failed, "the server's response cannot be read: \(error)")
        }
    }

    /// The request as a block of lines: the request line, the fields, the body.
    var request: [String] {
        let size = document["bodyBytes"]?.integer ?? 0
        let hidden = document["bodyBase64"] != nil || document["body"]?.isNull != false
        let body = hidden && size > 0 ? ["(\(ForPeople.bytes(size)) that are no text)"] : Self.lines(of: document["body"])
        return ["REQUEST", "\(report.method) \(report.url)".inOneLine] + Self.fields(document["headers"]) + body
    }

    /// The final answer of the upstream; empty without one.
    var answer: [String] {
        guard let result = document["result"], !result.isNull else { return [] }
        return ["ANSWER", "\(result["status"]?.integer ?? 0)"] + Self.fields(result["headers"]) + Self.lines(of: result["body"])
    }

    /// The commands that are allowed now, as one line; nil if there are none.
    var advice: String? {
        if let conflict = report.conflict { return "Next: rockpool conflicts show \(conflict)" }
        let repeating = (report.repeats ?? 0) > 0 ? ["repeat"] : []
        let allowed = (document["commands"]?.array ?? []).compactMap(\.string) + repeating
        return allowed.isEmpty ? nil : "Next: rockpool outbox \(allowed.joined(separator: "|")) \(report.id)"
    }

    /// What the writer had in front of it, as a sentence; nil where that is not known.
    static func seen(in document: JSONValue) -> String? {
        guard let seen = document["seen"], let moment = seen["at"]?.string else { return nil }
        let version = seen["version"]?.string.map { " as \($0)" } ?? ""
        let source = seen["from"]?.string.map { " from the \($0)" } ?? ""
        return "Its client had read it\(source)\(version), last at \(moment)."
    }

    private static func fields(_ fields: JSONValue?) -> [String] {
        (fields?.object ?? JSONObject()).flatMap { name, value in
            (value.array ?? [value]).map { "\(name): \($0.string ?? "")".inOneLine }
        }
    }

    /// The lines of a body after an empty line.
    private static func lines(of body: JSONValue?) -> [String] {
        guard let body, !body.isNull else { return [] }
        let lines = (body.string ?? body.indented()).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        let shown = lines.prefix(bodyLines).map { String($0).inOneLine }
        return [""] + shown + (lines.count > bodyLines ? ["… \((lines.count - bodyLines).counted("more line")): --format json"] : [])
    }
}

extension Display {
    func print(_ view: OperationView) {
        print(view.report.tables)
        if let seen = OperationView.seen(in: view.document) { print("\n" + seen.inOneLine) }
        for block in [view.request, view.answer] where !block.isEmpty {
            let heading = hasColour ? Colour.heading.painted(block[0]) : block[0]
            print("\n" + ([heading] + block.dropFirst().map { $0.isEmpty ? "" : "  " + $0 }).joined(separator: "\n"))
        }
        if let advice = view.advice { print("\n" + advice.inOneLine) }
    }
}
