// The selection of operations by `rockpool outbox` (docs/reference/cli.md#outbox-ls).
import ArgumentParser
import Glibc
import RockpoolCore

/// `--state` and the other options that select operations for a list.
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
