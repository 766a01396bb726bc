// The end of a command: its exit status and the lines on stderr (docs/reference/cli.md#exit-statuses; the numbers are those of sysexits.h).

/// The possible exit statuses.
enum ExitStatus: Int32, Sendable {
    case done = 0
    case failed = 1
    case usage = 64
    case notRunning = 69
    case busy = 75
    case configuration = 78
}

/// A failed command, with the reason as one line.
struct CommandFailure: Error, Hashable, CustomStringConvertible {
    var status: ExitStatus
    var message: String

    init(_ status: ExitStatus = .failed, _ message: String) {
        self.status = status
        self.message = message
    }

    var description: String { message }
}
