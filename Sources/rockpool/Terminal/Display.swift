// Output streams and their capabilities: width and colour for a terminal, neither for a pipe (https://no-color.org).
import Foundation

/// An output stream for people or for programs.
struct Display: Sendable {
    /// Columns; nil for a pipe or a file, without limit.
    var width: Int?
    var hasColour: Bool
    fileprivate var descriptor: Int32

    /// The requested output.
    static var output: Display { Display(descriptor: STDOUT_FILENO, environment: ProcessInfo.processInfo.environment) }
    /// Messages beside the requested output.
    static var error: Display { Display(descriptor: STDERR_FILENO, environment: ProcessInfo.processInfo.environment) }

    init(width: Int?, hasColour: Bool) {
        self.width = width
        self.hasColour = hasColour
        descriptor = STDOUT_FILENO
    }

    init(descriptor: Int32, environment: [String: String]) {
        self.descriptor = descriptor
        let isTerminal = isatty(descriptor) == 1
        hasColour = isTerminal && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
        width = isTerminal ? Self.columns(of: descriptor) ?? environment["COLUMNS"].flatMap { Int($0) } ?? 80 : nil
    }

    var isTerminal: Bool { width != nil }

    func print(_ line: String) { write(line + "\n") }

    /// Writes a text unchanged; on a terminal without what would control it (`String.shownOnTerminal`).
    func write(_ text: String) {
        let shown = isTerminal ? text.shownOnTerminal : text
        try? FileHandle(fileDescriptor: descriptor, closeOnDealloc: false).write(contentsOf: Data(shown.utf8))
    }

    private static func columns(of descriptor: Int32) -> Int? {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }
}
