// All problems of a configuration with their sources, one line each (docs/reference/configuration.md#mistakes).

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

/// One problem: `FILE:LINE: what is wrong (nearest valid key: …)`.
struct Problem: Hashable, Sendable, CustomStringConvertible {
    var place: Place
    var message: String

    var description: String { "\(place): \(message)" }
}

/// All problems of a configuration, in the order of its lines; never empty.
struct ConfigurationError: Error, Hashable, CustomStringConvertible {
    var problems: [Problem]

    var description: String { problems.map(\.description).joined(separator: "\n") }
}
