// What is wrong with a configuration and where it was said: one line each, all of them at once (contract §2).

/// Where a key got its value.
enum Place: Hashable, Sendable, CustomStringConvertible {
    /// Line 0 is all of it.
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

/// One thing wrong: `FILE:LINE: what is wrong (nearest valid key: …)`.
struct Problem: Hashable, Sendable, CustomStringConvertible {
    var place: Place
    var message: String

    var description: String { "\(place): \(message)" }
}

/// Everything wrong with a configuration, in the order of its lines; never empty.
struct ConfigurationError: Error, Hashable, CustomStringConvertible {
    var problems: [Problem]

    var description: String { problems.map(\.description).joined(separator: "\n") }
}
