// The words of a command line that name commands; a mistyped one is answered with the nearest before anything is parsed.
import ArgumentParser

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
