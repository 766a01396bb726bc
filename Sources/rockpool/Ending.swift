// The end of a command: its exit status and the lines on stderr (docs/reference/cli.md#exit-statuses).
import RockpoolNetwork

/// The exit status and output for an error that ends the process.
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
