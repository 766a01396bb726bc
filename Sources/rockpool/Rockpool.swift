// The root command: its subcommands and exit status (docs/reference/cli.md#commands).
import ArgumentParser
import Dispatch
import Foundation
import RockpoolNetwork

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

/// The commands that the first words of a command line name.
struct CommandWords {
    /// The words that name commands, `rockpool` first.
    private(set) var path = ["rockpool"]
    /// A word in the place of a command that names none; nil without one.
    private(set) var unknown: String?
    private var candidates: [String] = []
    /// Words that name no command, and the commands that are meant.
    private static let elsewhere = [
        "why": "rockpool cache explain URL (a response), or rockpool outbox show ID (a write)", "explain": "rockpool cache explain URL",
        "ls": "rockpool cache ls, or rockpool outbox ls", "purge": "rockpool cache purge", "queue": "rockpool outbox",
        "start": "rockpool serve", "up": "rockpool serve", "log": "rockpool tail, or rockpool sync log", "logs": "rockpool tail",
        "list": "rockpool cache ls, or rockpool outbox ls", "cleanup": "rockpool storage-cleanup", "clean": "rockpool storage-cleanup",
        "prune": "rockpool storage-cleanup", "gc": "rockpool storage-cleanup", "vacuum": "rockpool storage-cleanup --vacuum",
        "install": "rockpool service install", "offline": "rockpool network offline", "online": "rockpool network auto",
        "upstreams": "rockpool status", "resolve": "rockpool conflicts resolve", "retry": "rockpool outbox retry",
    ]

    /// True for `rockpool help more`.
    private(set) var asksForMore = false

    init(_ arguments: some Sequence<String>) {
        var words = Array(arguments)
        if words == ["help", "more"] {
            asksForMore = true
            return
        }
        if words.first == "help" { words.removeFirst() }
        var command: any ParsableCommand.Type = Rockpool.self
        for word in words {
            let inner = command.configuration.subcommands
            guard !inner.isEmpty, !word.hasPrefix("-") else { return }
            guard let next = inner.first(where: { Self.name(of: $0) == word }) else {
                (unknown, candidates) = (word, inner.map(Self.name))
                return
            }
            path.append(word)
            command = next
        }
    }

    /// The help of the last named command.
    var help: String { path.joined(separator: " ") + " --help" }

    /// Says which command is unknown and which one is meant, or which there are if none resembles it.
    var mistake: String? {
        guard let unknown else { return nil }
        let nearest = Nearest.to(unknown, of: candidates).flatMap { near in
            Nearest.distance(from: unknown, to: near) <= max(1, unknown.count / 3) || near.hasPrefix(unknown) ? near : nil
        }
        let head = "no command \"\(unknown.prefix(40))\""
        if path.count == 1, let other = Self.elsewhere[unknown] { return "\(head); did you mean: \(other)" }
        if let nearest { return "\(head); did you mean: \((path + [nearest]).joined(separator: " "))" }
        return "\(head) in \(path.joined(separator: " ")); there are \(candidates.joined(separator: ", "))"
    }

    /// The commands that `rockpool --help` leaves out because few need them, with what they are for.
    static var rarer: [(name: String, about: String)] {
        Rockpool.configuration.subcommands.filter { !$0.configuration.shouldDisplay }.map { (name(of: $0), $0.configuration.abstract) }
    }

    static func name(of command: any ParsableCommand.Type) -> String {
        command.configuration.commandName ?? "\(command)".lowercased()
    }
}

/// The exit status and output for an error that ends the process (docs/reference/cli.md#exit-statuses).
struct Ending: Hashable {
    var status: ExitStatus
    /// The complete output on stderr.
    var lines: [String]

    /// Nil for errors that ArgumentParser handles: bad usage and requests for help.
    init?(_ error: any Error) {
        switch error {
        case let error as CommandFailure:
            self.init(status: error.status, lines: ["rockpool: \(error.message)"])
        case let error as ConfigurationError:
            self.init(status: .configuration, lines: error.problems.map(\.description))
        case let error as AuthorityProblem:
            self.init(status: .configuration, lines: ["rockpool: \(error)"])
        case let error as AdminFailure:
            self.init(status: error.status, lines: ["rockpool: \(error)"])
        default:
            return nil
        }
    }

    /// A wrong command line.
    /// - Parameter help: the command that prints the usage.
    init(usage message: String, help: String) {
        self.init(status: .usage, lines: ["rockpool: \(message)", "See: \(help)"])
    }

    private init(status: ExitStatus, lines: [String]) {
        self.status = status
        self.lines = lines
    }
}
