// JSON values of numbers and times, as the documents of the admin API hold them.
import RockpoolCore

extension JSONValue {
    static func integer(_ value: some BinaryInteger) -> JSONValue { .number(JSONNumber(Int64(clamping: value))) }

    static func real(_ value: Double) -> JSONValue { JSONNumber(literal: "\(value)").map { .number($0) } ?? .null }

    /// The value of a whole number in any form of JSON: 60, 60.0, 6e1. Nil for another value.
    var wholeNumber: Int64? { integer ?? number.flatMap { Double($0.literal) }.flatMap(Int64.init(exactly:)) }

    static func time(_ value: Timestamp?) -> JSONValue { .optional(value.map(RFC3339.format)) }
}
