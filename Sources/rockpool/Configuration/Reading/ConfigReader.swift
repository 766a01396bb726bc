// Reads a document according to its description: records the source of each key, collects all problems, applies overrides.
import Foundation
import RockpoolCore
import RockpoolStore
import Yams

/// A value of the document with its source.
struct Entry {
    var node: Node
    var place: Place
}

/// The state of one reading.
struct ConfigReader {
    let file: String
    let environment: [String: String]
    /// Command-line flags by configuration key, e.g. `storage.cache_dir` → (`--cache-dir`, `/tmp/x`).
    let flags: [String: (flag: String, text: String)]

    /// False if the document must not set keys that need consent.
    var decides = true
    /// The keys that the document has set although it must not.
    private(set) var decisions: [ConsentRequest.Decision] = []
    private(set) var problems: [Problem] = []
    /// The source of each key that was set.
    private(set) var places: [String: Place] = [:]
    /// Every variable that could be set.
    private(set) var variables: Set<String> = []

    init(file: String, environment: [String: String] = [:], flags: [String: (flag: String, text: String)] = [:]) {
        self.file = file
        self.environment = environment
        self.flags = flags
    }

    mutating func refuse(_ message: String, at place: Place) {
        problems.append(Problem(place: place, message: message))
    }

    /// Notes that the document has set a key that needs consent; a value of a flag or a variable needs none.
    mutating func note(decision value: ConfigDocument, at path: KeyPathName) {
        guard let place = places[path.text], case .file = place else { return }
        decisions.append(.init(key: path.text, place: place, value: value.json().inOneLine))
    }

    /// Reports a contradiction at one of its keys, else at the nearest mapping around or key below the first. A key whose value was refused has
    /// none, so nothing is said of it twice.
    mutating func refuse(_ found: Contradiction) {
        guard !problems.contains(where: { $0.message.hasPrefix("\(found.key): ") }) else { return }
        let exact = places[found.key] ?? found.other.flatMap { places[$0] }
        let place = exact ?? placeAround(found.key) ?? placeBelow(found.key) ?? .file(file, line: 1)
        refuse("\(found.key): \(found.message)", at: place)
    }

    private func placeAround(_ key: String) -> Place? {
        var name = key[...]
        while let cut = name.lastIndex(where: { $0 == "." || $0 == "[" }) {
            name = name[..<cut]
            if let place = places[String(name)] { return place }
        }
        return nil
    }

    private func placeBelow(_ key: String) -> Place? {
        places.filter { $0.key.hasPrefix(key + ".") }.min { $0.key < $1.key }?.value
    }

    /// The text of a scalar key: from the flag, else the variable, else the document. Nil if it is not set or was refused.
    mutating func text(_ entry: Entry?, at path: KeyPathName) -> (text: String, place: Place)? {
        if let override = override(of: path) { return override }
        guard let entry else { return nil }
        guard let scalar = entry.node.scalar, !entry.node.isNothing else {
            refuse("\(path.text): one value belongs here\(entry.node.isNothing ? "" : ", not a \(entry.node.kind)")", at: entry.place)
            return nil
        }
        return (scalar.string, entry.place)
    }

    /// The flag or variable that overrides a key.
    mutating func override(of path: KeyPathName) -> (text: String, place: Place)? {
        guard path.isOverridable else { return nil }
        variables.insert(path.variable)
        let override: (text: String, place: Place)? =
            if let flag = flags[path.text] {
                (flag.text, .flag(flag.flag))
            } else if let text = environment[path.variable] {
                (text, .variable(path.variable))
            } else {
                nil
            }
        if let override { places[path.text] = override.place }
        return override
    }

    /// The members of a mapping; unknown keys are refused with the nearest of `known` (nil: any key is allowed).
    mutating func entries(of entry: Entry?, at path: KeyPathName, known: [String]?) -> [(name: String, entry: Entry)] {
        guard let entry, !entry.node.isNothing else { return [] }
        guard let mapping = entry.node.mapping else {
            refuse(
                "\(path.text.isEmpty ? "the configuration" : path.text): a mapping belongs here, not a \(entry.node.kind)", at: entry.place)
            return []
        }
        var entries: [(name: String, entry: Entry)] = []
        for (key, value) in mapping {
            let name = key.scalar?.string ?? ""
            let place = place(of: key, otherwise: entry.place)
            if let known, !known.contains(name) {
                let nearest = Nearest.to(name, of: known).map { " (nearest valid key: \($0))" } ?? ""
                refuse("unknown key \"\(name)\"\(path.text.isEmpty ? "" : " in \(path.text)")\(nearest)", at: place)
            } else {
                places[path.key(name).text] = place
                entries.append((name, Entry(node: value, place: place)))
            }
        }
        return entries
    }

    /// The items of a sequence; a single scalar or mapping counts as a list of one.
    mutating func items(of entry: Entry, at path: KeyPathName) -> [Entry] {
        if entry.node.isNothing { return [] }
        guard let sequence = entry.node.sequence else { return [entry] }
        return sequence.enumerated().map { index, node in
            let place = place(of: node, otherwise: entry.place)
            places[path.item(index).text] = place
            return Entry(node: node, place: place)
        }
    }

    private func place(of node: Node, otherwise place: Place) -> Place {
        node.mark.map { .file(file, line: $0.line) } ?? place
    }
}

extension Node {
    /// True if the document leaves the value open: `null`, `~`, or nothing after the colon. A quoted "" is a text.
    var isNothing: Bool {
        guard let scalar, scalar.style == .plain || scalar.style == .any else { return false }
        return ["", "~", "null", "Null", "NULL"].contains(scalar.string)
    }

    fileprivate var kind: String {
        switch self {
        case .mapping: "mapping"
        case .sequence: "list"
        case .scalar, .alias: "single value"
        }
    }
}

/// The source of a key's value.
enum Place: Hashable, Sendable, CustomStringConvertible {
    /// Line 0 is the whole file.
    case file(String, line: Int)
    case variable(String)
    case flag(String)

    var description: String {
        switch self {
        case .file(let name, let line): line == 0 ? name : "\(name):\(line)"
        case .variable(let name), .flag(let name): name
        }
    }
}

/// One problem (docs/reference/configuration.md#mistakes): `FILE:LINE: what is wrong (nearest valid key: …)`.
struct Problem: Hashable, Sendable, CustomStringConvertible {
    var place: Place
    var message: String

    var description: String { "\(place): \(message)" }
}

/// All problems of a configuration, in the order of its lines; never empty.
struct ConfigurationError: Error, Hashable, CustomStringConvertible {
    var problems: [Problem]
    /// The consent that would make the file usable; nil if none is needed, or if it would not be enough.
    var consent: ConsentRequest?
    /// The format of the log that the configuration names, as far as it was read.
    var logFormat = LogFormat.text

    var description: String { problems.map(\.description).joined(separator: "\n") }
}

/// A contradiction between keys with individually valid values.
struct Contradiction: Hashable, Sendable {
    /// The key to report, and another one to use if the first is not set.
    var key: String
    var other: String?
    var message: String

    init(_ key: String, with other: String? = nil, _ message: String) {
        self.key = key
        self.other = other
        self.message = message
    }
}

/// Finds the known word nearest to a mistyped one by edit distance (Damerau; a swap of neighbours counts once).
enum Nearest {
    /// The closest of `candidates`, the first among equals; nil only if there are none.
    static func to(_ word: String, of candidates: [String]) -> String? {
        candidates.min { distance(from: word, to: $0) < distance(from: word, to: $1) }
    }

    /// Counts insertions, deletions, replacements and swaps of neighbours between two words, case-insensitively.
    static func distance(from a: String, to b: String) -> Int {
        let a = Array(a.lowercased()), b = Array(b.lowercased())
        var before: [Int] = []
        var last = Array(0...b.count)
        for i in a.indices {
            var row = [i + 1]
            for j in b.indices {
                var best = min(last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, before[j - 1] + 1) }
                row.append(best)
            }
            (before, last) = (last, row)
        }
        return last[b.count]
    }
}

/// The consent that a file needs (docs/reference/configuration.md#working-directory).
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
