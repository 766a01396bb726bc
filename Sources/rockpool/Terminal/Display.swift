// Output streams and their capabilities: width and colour for a terminal, neither for a pipe (https://no-color.org).
import Foundation
import Glibc
import Synchronization

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

/// The colours used for meaning.
enum Colour: String, Hashable, Sendable {
    case good = "32"
    case warning = "33"
    case bad = "31"
    case heading = "1"

    func painted(_ text: String) -> String { "\u{1B}[\(rawValue)m\(text)\u{1B}[0m" }
}

/// The line that `Waiting` shows (docs/reference/cli.md#common-options).
final class ProgressBar: Sendable {
    private static let width = 20
    private let what: String
    private let state: Mutex<String>

    /// - Parameter what: the name of the task, shown alone until the first progress.
    init(_ what: String) {
        self.what = what
        state = Mutex(what)
    }

    var text: String { state.withLock(\.self) }

    /// - Parameter words: the current step.
    func show(_ done: Int, of count: Int, words: String) {
        let filled = count > 0 ? min(Self.width, max(0, done * Self.width / count)) : 0
        let bar = String(repeating: "#", count: filled) + String(repeating: "-", count: Self.width - filled)
        state.withLock { $0 = "\(what) [\(bar)] \(words)" }
    }
}

/// Shows a line on a terminal while a task takes longer than a second, and removes it afterwards (docs/reference/cli.md#common-options).
enum Waiting {
    /// Runs a step; from the first second on, stderr shows a line with the elapsed time. `what` is evaluated every second.
    static func on<Value: Sendable>(
        _ what: @autoclosure @escaping @Sendable () -> String, display: Display = .error, clock: ContinuousClock = ContinuousClock(),
        step: () async throws -> Value
    ) async throws -> Value {
        guard display.isTerminal else { return try await step() }
        let ticker = Task {
            let start = clock.now
            defer { display.write("\r\u{1B}[K") }
            while true {
                try await clock.sleep(for: .seconds(1))
                let line = "\(what()) … \(ForPeople.seconds(Double(start.duration(to: clock.now).components.seconds)))"
                // A wrapped line could not be erased.
                display.write("\r\u{1B}[K\(line.prefix(max(1, (display.width ?? 80) - 1)))")
            }
        }
        do {
            let value = try await step()
            await end(ticker)
            return value
        } catch {
            await end(ticker)
            throw error
        }
    }

    /// Waits until the line is erased, so that later output does not mix with it.
    private static func end(_ ticker: Task<Void, any Error>) async {
        ticker.cancel()
        _ = await ticker.result
    }
}

/// A question to the person at the terminal.
enum Question {
    /// True if somebody can answer.
    static var canAsk: Bool { isatty(STDIN_FILENO) == 1 && Display.error.isTerminal }

    /// Asks, and returns true for a yes.
    static func ask(_ question: String) -> Bool {
        Display.error.write("rockpool: \(question)? [y/N] ")
        return ["y", "yes"].contains(readLine()?.lowercased() ?? "")
    }
}
