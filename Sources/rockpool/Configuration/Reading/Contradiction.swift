// A contradiction within a configuration.

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
