// What a configuration file may not decide that nobody has named: it was found in the working directory, and may have come with a clone
// (docs/reference/configuration.md#working-directory).
import Foundation
import RockpoolStore

/// The consent that a file needs.
struct ConsentRequest: Hashable, Sendable {
    /// A key with a value of its own that only the user decides.
    struct Decision: Hashable, Sendable {
        let key: String
        let place: Place
        /// The value, in one line.
        let value: String

        fileprivate var line: Int {
            guard case .file(_, let line) = place else { return 0 }
            return line
        }
    }

    let file: String
    /// The content for which consent is needed.
    let bytes: [UInt8]
    /// In the order of their lines.
    let decisions: [Decision]

    init(file: String, bytes: [UInt8], decisions: [Decision]) {
        (self.file, self.bytes) = (file, bytes)
        self.decisions = decisions.enumerated().sorted { ($0.element.line, $0.offset) < ($1.element.line, $1.offset) }.map(\.element)
    }

    /// The problem to report: one line, with the command.
    var problem: Problem {
        let (first, more) = (decisions.prefix(3).map(\.key).joined(separator: ", "), decisions.count - 3)
        return Problem(
            place: decisions.first?.place ?? .file(file, line: 1),
            message:
                "\(first)\(more > 0 ? " and \(more) more" : ""): this file was found in the working directory and needs your consent; "
                + "read it, then run: rockpool config trust")
    }

    /// Asks on the terminal, and notes the consent. Throws if there is no terminal, or the answer is not yes.
    func ask(_ book: ConsentBook) throws {
        guard isatty(STDIN_FILENO) == 1, Display.error.isTerminal else { throw ConfigurationError(problems: [problem], consent: self) }
        Display.error.print("rockpool: \(file) was found in the working directory, and sets what only you decide:".inOneLine)
        for decision in decisions { Display.error.print("  \(decision.place): \(decision.key): \(decision.value)".inOneLine) }
        Display.error.write("Use this file, until it changes? [y/N] ")
        guard ["y", "yes"].contains(readLine()?.lowercased()) else {
            throw CommandFailure(.configuration, "\(file) is not used; another one is named by --config".inOneLine)
        }
        try note(in: book)
    }

    /// Notes the consent.
    func note(in book: ConsentBook) throws {
        do { try book.add(file, bytes: bytes) } catch { throw CommandFailure(.failed, "the consent cannot be kept: \(error)".inOneLine) }
    }
}
