// The error of an invalid configuration.

/// All problems of a configuration, in the order of its lines; never empty.
struct ConfigurationError: Error, Hashable, CustomStringConvertible {
    var problems: [Problem]

    var description: String { problems.map(\.description).joined(separator: "\n") }
}
