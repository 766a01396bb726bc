// Parameters in PostgreSQL's binary form, and results in its text form (src/backend/utils/adt/*recv in its source; arrays: array_recv).

/// A parameter of a statement, with the number of its type in `pg_type`.
struct PostgreSQLValue: Sendable {
    var type: UInt32
    /// Nil for NULL.
    var bytes: [UInt8]?

    static func text(_ value: String?) -> Self { Self(type: 25, bytes: value.map { Array($0.utf8) }) }
    static func bytes(_ value: [UInt8]?) -> Self { Self(type: 17, bytes: value) }
    static func number(_ value: Int64?) -> Self { Self(type: 20, bytes: value.map { bigEndian($0) }) }

    static func texts(_ values: [String?]) -> Self { array(of: 25, values.map { $0.map { Array($0.utf8) } }) }
    static func bytes(_ values: [[UInt8]?]) -> Self { array(of: 17, values) }
    static func numbers(_ values: [Int64?]) -> Self { array(of: 20, values.map { $0.map { bigEndian($0) } }) }

    /// The types of arrays of these elements.
    private static let arrays: [UInt32: UInt32] = [25: 1009, 17: 1001, 20: 1016]

    /// One dimension, counted from 1.
    private static func array(of element: UInt32, _ values: [[UInt8]?]) -> Self {
        var bytes = bigEndian(Int32(1)) + bigEndian(Int32(values.contains { $0 == nil } ? 1 : 0)) + bigEndian(Int32(element))
        bytes += bigEndian(Int32(values.count)) + bigEndian(Int32(1))
        for value in values {
            bytes += bigEndian(Int32(value?.count ?? -1))
            bytes += value ?? []
        }
        return Self(type: arrays[element] ?? 0, bytes: bytes)
    }

    static func bigEndian<N: FixedWidthInteger>(_ number: N) -> [UInt8] {
        (0..<N.bitWidth / 8).reversed().map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }
}

extension [UInt8]? {
    /// A number in text form; nil for NULL and anything else.
    var number: Int64? { self.flatMap { Int64(String(decoding: $0, as: UTF8.self)) } }
    var text: String? { self.map { String(decoding: $0, as: UTF8.self) } }

    /// Bytes from hexadecimal digits.
    var fromHex: [UInt8]? {
        guard let digits = self else { return nil }
        func value(_ digit: UInt8) -> UInt8 { digit >= 0x61 ? digit - 0x57 : digit - 0x30 }
        return stride(from: 0, to: digits.count - 1, by: 2).map { value(digits[$0]) << 4 | value(digits[$0 + 1]) }
    }
}
