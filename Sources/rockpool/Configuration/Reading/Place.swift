// A place in the configuration's sources.

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
