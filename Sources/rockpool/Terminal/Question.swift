// A question to the person at the terminal.
import Glibc

enum Question {
    /// True if somebody can answer.
    static var canAsk: Bool { isatty(STDIN_FILENO) == 1 && Display.error.isTerminal }

    /// Asks, and returns true for a yes.
    static func ask(_ question: String) -> Bool {
        Display.error.write("rockpool: \(question)? [y/N] ")
        return ["y", "yes"].contains(readLine()?.lowercased() ?? "")
    }
}
