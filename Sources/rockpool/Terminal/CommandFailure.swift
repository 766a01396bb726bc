// A failed command.

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
