// What is wrong with a size, a duration or a share in the configuration, in words (contract §2).

/// A quantity that cannot be read. The description is shown to whoever wrote it.
package enum UnitError: Error, Hashable, Sendable {
    case empty
    /// It does not begin with a number.
    case noNumber(String)
    /// A number without the unit it needs; the units there are.
    case missingUnit(String, known: [String])
    /// A unit nobody knows; the units there are.
    case unknownUnit(String, known: [String])
    /// Beyond what can be counted.
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
