// A row of SQLite as bytes: the form in which nodes exchange rows. Columns are named, so that a column more or less needs no other form.
import FoundationEssentials
import GRDB

/// The named values of a row. Encoded: for each its name, one byte for its type, and the value; lengths are four bytes, numbers big-endian.
struct RowBytes: Sendable {
    var values: [(name: String, value: DatabaseValue)]

    init(_ values: [(name: String, value: DatabaseValue)]) { self.values = values }

    /// The value of a column; NULL for one that is not there.
    subscript(_ name: String) -> DatabaseValue {
        get { values.first { $0.name == name }?.value ?? .null }
        set { values = values.filter { $0.name != name } + [(name, newValue)] }
    }

    /// Takes the values of these columns away where `isFit` is true of them.
    mutating func forget(_ names: Set<String>, where isFit: (DatabaseValue) -> Bool) {
        for index in values.indices where names.contains(values[index].name) && isFit(values[index].value) { values[index].value = .null }
    }

    var encoded: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(values.count * 32)
        for (name, value) in values { Self.append(value, named: Array(name.utf8), to: &bytes) }
        return bytes
    }

    /// Appends one value to encoded ones.
    static func append(_ value: DatabaseValue, named name: [UInt8], to bytes: inout [UInt8]) {
        bytes.append(UInt8(truncatingIfNeeded: name.count))
        bytes += name
        switch value.storage {
        case .null: bytes.append(0)
        case .int64(let number): append(number, as: 1, to: &bytes)
        case .double(let number): append(number.bitPattern, as: 2, to: &bytes)
        case .string(let text): append(text.utf8, as: 3, to: &bytes)
        case .blob(let data): append(data, as: 4, to: &bytes)
        }
    }

    private static func append(_ number: some FixedWidthInteger, as type: UInt8, to bytes: inout [UInt8]) {
        bytes.append(type)
        unsafe withUnsafeBytes(of: number.bigEndian) { unsafe bytes.append(contentsOf: $0) }
    }

    private static func append(_ part: some Collection<UInt8>, as type: UInt8, to bytes: inout [UInt8]) {
        append(UInt32(part.count), as: type, to: &bytes)
        bytes.append(contentsOf: part)
    }

    /// - Returns: nil for bytes that `encoded` has not made.
    init?(_ bytes: [UInt8]) {
        var (rest, values): (ArraySlice<UInt8>, [(name: String, value: DatabaseValue)]) = (bytes[...], [])
        func take(_ count: Int) -> ArraySlice<UInt8>? {
            guard count >= 0, count <= rest.count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }
        func number(_ count: Int) -> UInt64? { take(count)?.reduce(0) { $0 << 8 | UInt64($1) } }
        while let length = rest.popFirst() {
            guard let name = take(Int(length)), let type = rest.popFirst() else { return nil }
            let value: DatabaseValue
            switch type {
            case 0: value = .null
            case 1:
                guard let number = number(8) else { return nil }
                value = Int64(bitPattern: number).databaseValue
            case 2:
                guard let number = number(8) else { return nil }
                value = Double(bitPattern: number).databaseValue
            case 3, 4:
                guard let count = number(4), let part = take(Int(count)) else { return nil }
                value = type == 3 ? String(decoding: part, as: UTF8.self).databaseValue : Data(part).databaseValue
            default: return nil
            }
            values.append((String(decoding: name, as: UTF8.self), value))
        }
        self.values = values
    }
}
