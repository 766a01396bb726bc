// What a command ends in: the exit status and the lines on stderr (contract §1; the numbers are those of sysexits.h).
import RockpoolNetwork

/// The exit statuses there are.
enum ExitStatus: Int32, Sendable {
    case done = 0
    case failed = 1
    case usage = 64
    case notRunning = 69
    case busy = 75
    case configuration = 78
}

/// A command that did not do what was asked, and the one line that says why.
struct CommandFailure: Error, Hashable {
    var status: ExitStatus
    var message: String

    init(_ status: ExitStatus = .failed, _ message: String) {
        self.status = status
        self.message = message
    }
}

/// How an error ends the process.
struct Ending: Hashable {
    var status: ExitStatus
    /// For stderr, whole.
    var lines: [String]

    /// nil for errors that are ArgumentParser's own: bad usage, and requests for help.
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

    private init(status: ExitStatus, lines: [String]) {
        self.status = status
        self.lines = lines
    }
}
