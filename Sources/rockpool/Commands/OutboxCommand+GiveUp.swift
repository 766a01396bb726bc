// `rockpool outbox cancel|discard`: cancels one operation, or also all its dependants (docs/reference/cli.md#outbox-discard;
// docs/outbox.md#steering, P13).
import ArgumentParser
import Glibc

extension OutboxCommand {
    struct Discard: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Discard an operation, or all that are selected; they stay readable as cancelled.",
            discussion: """
                Operations that depend on it are listed, and cancelled too after a confirmation or with --tree.

                EXAMPLES
                  rockpool outbox discard ID
                  rockpool outbox discard --state dead --upstream notes --yes
                """)
        @Argument(help: "The operation\'s id, or a part of it.", completion: Completions.operations, transform: CommonOptions.id) var id:
            String?
        @Flag(name: .long, help: "Also cancel all operations that depend on it.") var tree = false
        @OptionGroup var bulk: OutboxBulk
        @OptionGroup var common: CommonOptions

        func validate() throws {
            if (id == nil) != bulk.isUsed { throw ValidationError("give the id of an operation, or --state") }
        }

        func run() async throws {
            guard let id else {
                let query = tree ? ["tree": "true"] : [:]
                return try await bulk.run(verb: "discard", through: try common.client()) {
                    AdminCall(method: "DELETE", path: .operation($0), query: query)
                }
            }
            try await GivingUp(id: id, call: .delete(.operation(id)), said: "is discarded").run(
                through: try common.client(), withTree: tree)
        }
    }

    struct Cancel: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Cancel an operation that was not sent yet.",
            discussion: .examples(
                "rockpool outbox cancel ID",
                after: "Guaranteed only if no attempt was sent; otherwise a warning is printed."))
        @Argument(help: "The operation\'s id, or a part of it.", completion: Completions.operations, transform: CommonOptions.id) var id:
            String
        @Flag(name: .long, help: "Also cancel all operations that depend on it.") var tree = false
        @OptionGroup var common: CommonOptions

        func run() async throws {
            let call = AdminCall.post(.operation(id, verb: "cancel"))
            try await GivingUp(id: id, call: call, said: "is cancelled").run(through: try common.client(), withTree: tree)
        }
    }
}

/// The cancellation of one operation, with the question if others depend on it.
private struct GivingUp {
    var id: String
    var call: AdminCall
    var said: String

    func run(through client: AdminClient, withTree: Bool) async throws {
        do {
            try await send(through: client, withTree: withTree)
        } catch AdminFailure.needed(let others) where !withTree {
            let lines = others.map { "  \($0.id)  \($0.method) \($0.url)".inOneLine }.joined(separator: "\n")
            Display.error.print("\(id) is needed by:\n\(lines)".replacing("\u{1B}", with: ""))
            guard isatty(STDIN_FILENO) == 1, Display.error.isTerminal else {
                throw CommandFailure(.failed, "nothing has changed; add --tree to cancel all \(others.count + 1) of them")
            }
            Display.error.write("Cancel all \(others.count + 1) of them? [y/N] ")
            guard ["y", "yes"].contains(readLine()?.lowercased()) else { throw CommandFailure(.failed, "nothing has changed") }
            try await send(through: client, withTree: true)
        }
    }

    private func send(through client: AdminClient, withTree: Bool) async throws {
        var call = call
        if withTree { call.query["tree"] = "true" }
        try await OutboxCommand.change(through: client, call: call, id: id, said: said)
    }
}
