// The root command: its subcommands and exit status (docs/reference/cli.md#commands).
import ArgumentParser
import Dispatch
import Foundation

@main
enum Program {
    /// Runs the command away from the main thread. Swift gives the tasks of the main thread the priority of a person who waits. On Linux that
    /// is a nice value which only root may ask for; each thread of a service would complain of it in the journal.
    static func main() {
        Task.detached(priority: .medium) {
            await Rockpool.runCommandLine()
            Foundation.exit(ExitStatus.done.rawValue)
        }
        DispatchSemaphore(value: 0).wait()
    }
}

struct Rockpool: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rockpool",
        abstract: "An offline cache proxy: reads from a cache, writes through an outbox, for any HTTP client.",
        discussion: """
            TASKS
              begin with an API             rockpool add URL; rockpool serve
              see what happens              rockpool status, tail, dashboard
              why did a request miss        rockpool cache explain URL; the last misses:
                                            rockpool tail --miss --no-follow
              fix a refused write           rockpool outbox ls --state dead, then:
                                            rockpool outbox show ID, edit ID
              who fills the outbox          rockpool outbox summary
              free disk space               rockpool storage-cleanup --dry-run says how
              go offline for a flight       rockpool cache prefetch --file urls.txt --pin,
                                            then: rockpool network offline;
                                            and back: rockpool network auto
              read more                     rockpool docs; rockpool help more
            """,
        version: Version.number,
        groupedSubcommands: [
            CommandGroup(
                name: "Start",
                subcommands: [
                    ServeCommand.self, InitCommand.self, AddCommand.self, RemoveCommand.self, LearnCommand.self, DemoCommand.self,
                    ServiceCommand.self,
                ]),
            CommandGroup(
                name: "See",
                subcommands: [
                    StatusCommand.self, StatsCommand.self, TailCommand.self, DashboardCommand.self, EntitiesCommand.self,
                    FleetCommand.self, DoctorCommand.self,
                ]),
            CommandGroup(
                name: "Steer",
                subcommands: [
                    OutboxCommand.self, ConflictsCommand.self, SyncCommand.self, NetworkCommand.self, NotifyCommand.self,
                    CacheCommand.self,
                    StorageCleanupCommand.self, IdentitiesCommand.self, LearnedCommand.self,
                ]),
            CommandGroup(
                name: "Clients",
                subcommands: [
                    RunCommand.self, EnvCommand.self, CACommand.self, ProxyPasswordCommand.self, TransparentCommand.self,
                ]),
            CommandGroup(
                name: "Keep",
                subcommands: [
                    ConfigCommand.self, ReloadCommand.self, BackupCommand.self, RestoreCommand.self, DocsCommand.self, VersionCommand.self,
                ]),
        ])

    /// Runs the command that the command line names. Ends the process where it fails.
    static func runCommandLine() async {
        let words = CommandWords(CommandLine.arguments.dropFirst())
        if words.asksForMore {
            let table = TextTable(
                columns: [.text("COMMAND"), .text("FOR")], rows: CommandWords.rarer.map { [.init($0.name), .init($0.about)] })
            return Display.output.print([table])
        }
        if let mistake = words.mistake { end(Ending(usage: mistake, help: words.help)) }
        do {
            var command = try await asyncParseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch {
            if let ending = Ending(error) { end(ending) }
            let message = message(for: error)
            // Help, the version, and a status that a command has chosen are the parser's to print.
            guard exitCode(for: error) == .validationFailure, !message.isEmpty else { exit(withError: error) }
            end(Ending(usage: message, help: words.help))
        }
    }

    private static func end(_ ending: Ending) -> Never {
        for line in ending.lines { LogOutput.standardError.fail(line) }
        Foundation.exit(ending.status.rawValue)
    }
}
