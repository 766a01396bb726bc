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
