// `rockpool identities`: lists identities, and forgets one (docs/reference/cli.md#identities).
import ArgumentParser
import Glibc
import RockpoolCore

struct IdentitiesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "identities", abstract: "List identities, or remove what is kept of one.",
        discussion: """
            EXAMPLES
              rockpool identities ls
              rockpool identities forget ID --keep-writes          # copies and credentials
            """,
        shouldDisplay: false, subcommands: [List.self, Forget.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "ls", abstract: "List identities: their copies, waiting writes and credentials.",
            discussion: .examples(
                "rockpool identities ls"))
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            try options.print(try await options.common.client().pages(of: .get("/v1/identities")), as: IdentitiesReport.self)
        }
    }

    struct Forget: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove the copies and credentials of an identity.",
            discussion: .examples(
                "rockpool identities forget ID --keep-writes",
                after: "Waiting writes are dropped after a confirmation or with --yes, or kept with --keep-writes."))
        @Argument(help: "The identity\'s id.", completion: Completions.identities, transform: CommonOptions.id) var id: String
        @Flag(name: .long, help: "Drop its waiting writes too, without a question.") var yes = false
        @Flag(name: .long, help: "Keep its waiting writes; they park until its client shows a credential again.") var keepWrites = false
        @OptionGroup var options: ReadingOptions

        func validate() throws {
            if yes, keepWrites { throw ValidationError("give --yes or --keep-writes, not both") }
        }

        func run() async throws {
            let client = try options.common.client()
            let drops = keepWrites ? false : yes ? true : try await mayDrop(client)
            let call = AdminCall.delete("/v1/identities/\(AdminCall.segment(id))", query: ["writes": drops ? "drop" : "keep"])
            try options.print(try await client.send(call, timeout: .minutes(10)), as: ForgottenReport.self)
        }

        /// Returns true after the confirmation that waiting writes may be dropped, false if there are none. Throws if it is not given.
        private func mayDrop(_ client: AdminClient) async throws -> Bool {
            let known = try await client.pages(of: .get("/v1/identities")).decoded(as: IdentitiesReport.self).items
            guard let waiting = known.first(where: { $0.id == id })?.waiting, waiting > 0 else { return false }
            guard isatty(STDIN_FILENO) == 1, Display.error.isTerminal else {
                throw CommandFailure(
                    .failed,
                    "nothing has changed: \(waiting.counted("write waits", "writes wait")); add --yes to drop, or --keep-writes to keep what waits"
                )
            }
            Display.error.write("Drop \(waiting.counted("waiting write")) of this identity too? [y/N] ")
            guard ["y", "yes"].contains(readLine()?.lowercased()) else { throw CommandFailure(.failed, "nothing has changed") }
            return true
        }
    }
}
