// `rockpool outbox cancel|discard`: giving up one operation, or with it all that need it (contract §1; outbox.md §1.3, P13).
import ArgumentParser
import Glibc

extension OutboxCommand {
    struct Discard: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Give an operation up; it stays readable as cancelled.",
            discussion: "What needs it would be left without: it is listed, and given up as well when you say so, or with --tree.")
        @Argument(help: "The operation\'s id.", transform: CommonOptions.id) var id: String
        @Flag(name: .long, help: "Give up what needs it as well.") var tree = false
        @OptionGroup var common: CommonOptions

        func run() async throws {
            try await GivingUp(id: id, call: .delete(.operation(id)), said: "is discarded").run(try common.client(), withTree: tree)
        }
    }

    struct Cancel: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Take back an operation that was not sent yet.",
            discussion: "Final only if nothing of it was ever sent; otherwise a warning says so.")
        @Argument(help: "The operation\'s id.", transform: CommonOptions.id) var id: String
        @Flag(name: .long, help: "Give up what needs it as well.") var tree = false
        @OptionGroup var common: CommonOptions

        func run() async throws {
            let call = AdminCall.post(.operation(id, "cancel"))
            try await GivingUp(id: id, call: call, said: "is cancelled").run(try common.client(), withTree: tree)
        }
    }
}

/// One operation that is to go, and the question when others need it.
private struct GivingUp {
    var id: String
    var call: AdminCall
    var said: String

    func run(_ client: AdminClient, withTree: Bool) async throws {
        do {
            try await send(client, withTree: withTree)
        } catch AdminFailure.needed(let others) where !withTree {
            let lines = others.map { "  \($0.id)  \($0.method) \($0.url)".inOneLine }.joined(separator: "\n")
            Display.error.print("\(id) is needed by:\n\(lines)".replacing("\u{1B}", with: ""))
            guard isatty(STDIN_FILENO) == 1, Display.error.isTerminal else {
                throw CommandFailure(.failed, "nothing has changed; add --tree to give up all \(others.count + 1) of them")
            }
            Display.error.write("Give up all \(others.count + 1) of them? [y/N] ")
            guard ["y", "yes"].contains(readLine()?.lowercased()) else { throw CommandFailure(.failed, "nothing has changed") }
            try await send(client, withTree: true)
        }
    }

    private func send(_ client: AdminClient, withTree: Bool) async throws {
        var call = call
        if withTree { call.query["tree"] = "true" }
        try await OutboxCommand.change(client, call, id, said: said)
    }
}
