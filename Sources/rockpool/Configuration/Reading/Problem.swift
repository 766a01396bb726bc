// All problems of a configuration with their sources, one line each (docs/reference/configuration.md#mistakes).

/// One problem: `FILE:LINE: what is wrong (nearest valid key: …)`.
struct Problem: Hashable, Sendable, CustomStringConvertible {
    var place: Place
    var message: String

    var description: String { "\(place): \(message)" }
}
