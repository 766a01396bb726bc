// Where lines go and what it can show: width and colour of a terminal, neither of a pipe (https://no-color.org).
import Foundation

/// A stream for people or for programs.
struct Display: Sendable {
    /// Columns; nil is unlimited, a pipe or a file.
    var width: Int?
    var hasColour: Bool
    fileprivate var descriptor: Int32

    /// What is asked for.
    static var output: Display { Display(descriptor: STDOUT_FILENO, environment: ProcessInfo.processInfo.environment) }
    /// What is said beside it.
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

    func write(_ text: String) {
        try? FileHandle(fileDescriptor: descriptor, closeOnDealloc: false).write(contentsOf: Data(text.utf8))
    }

    private static func columns(of descriptor: Int32) -> Int? {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }
}

/// The few colours that say something.
enum Colour: String, Hashable, Sendable {
    case good = "32"
    case warning = "33"
    case bad = "31"
    case heading = "1"

    func painted(_ text: String) -> String { "\u{1B}[\(rawValue)m\(text)\u{1B}[0m" }
}

extension String {
    /// Without control characters: what a server or a URL says must not steer the terminal.
    var inOneLine: String {
        String(unicodeScalars.map { $0.properties.generalCategory == .control ? " " : Character($0) })
    }
}
