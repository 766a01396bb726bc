// How many more hops an OPTIONS request may take (RFC 9110 §7.6.2).
package import HTTPTypes

/// What Max-Forwards asks of this hop.
package enum MaxForwards: Hashable, Sendable {
    /// Send it on.
    case forward
    /// This is the last recipient: answer it here.
    case answer

    /// Counts this hop off in `fields`. Only OPTIONS counts (TRACE is not served); other methods carry the field along.
    /// Throws a 400 for a value that is not one number.
    package static func counted(method: String, in fields: inout HTTPFields) throws(Refusal) -> MaxForwards {
        guard method == "OPTIONS", fields.contains(.maxForwards) else { return .forward }
        let values = fields[values: .maxForwards]
        guard values.count == 1, let digits = values.first.map({ Substring($0).trimmingOWS() }), digits.isDigits else {
            throw .badRequest("Max-Forwards is not one number")
        }
        let hops = Int(digits) ?? .max
        guard hops > 0 else { return .answer }
        fields[.maxForwards] = String(hops - 1)
        return .forward
    }
}
