// Errors in a size, a duration or a percentage of the configuration, in words (docs/reference/configuration.md#values).

/// A quantity that cannot be parsed. The description is shown to the author of the configuration.
package enum UnitError: Error, Hashable, Sendable {
    case empty
    /// The text does not begin with a number.
    case noNumber(String)
    /// A number without a required unit, and the known units.
    case missingUnit(String, known: [String])
    /// An unknown unit, and the known units.
    case unknownUnit(String, known: [String])
    /// The number is too large to represent.
    case tooLarge(String)
    /// Not within 0…100 %.
    case notPercent(String)
}

extension UnitError: CustomStringConvertible {
    /// One clause for a report that begins with file and line.
    package var description: String {
        switch self {
        case .empty: "empty"
        case .noNumber(let text): "'\(text)' does not begin with a number"
        case .missingUnit(let text, let known): "'\(text)' needs a unit: \(known.joined(separator: ", "))"
        case .unknownUnit(let unit, let known): "unknown unit '\(unit)'; known are \(known.joined(separator: ", "))"
        case .tooLarge(let text): "'\(text)' is too large"
        case .notPercent(let text): "'\(text)' is not a share from 0% to 100%"
        }
    }
}
