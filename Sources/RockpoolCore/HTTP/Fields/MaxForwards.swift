// Max-Forwards: the remaining number of hops of an OPTIONS request (RFC 9110 §7.6.2).
package import HTTPTypes

/// The action that Max-Forwards requires at this hop.
package enum MaxForwards: Hashable, Sendable {
    /// Forward the request.
    case forward
    /// This is the last recipient: respond here.
    case answer

    /// Decrements the field in `fields` for this hop. Only OPTIONS is counted (TRACE is not served); other methods forward the field
    /// unchanged. Throws a 400 for a value that is not one number.
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
