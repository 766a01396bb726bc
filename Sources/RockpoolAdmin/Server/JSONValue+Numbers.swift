// JSON values of numbers and times, as the documents of the admin API hold them.
import RockpoolCore

extension JSONValue {
    static func integer(_ value: some BinaryInteger) -> JSONValue { .number(JSONNumber(Int64(clamping: value))) }

    static func real(_ value: Double) -> JSONValue { JSONNumber(literal: "\(value)").map { .number($0) } ?? .null }

    static func time(_ value: Timestamp?) -> JSONValue { .optional(value.map(RFC3339.format)) }
}
