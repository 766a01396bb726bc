// Looks up names of fields in bytes, without a copy: done for every field of every request.

/// Values by lower-case names and beginnings of names. Names with the same first byte and length share a slot, and beginnings with the same first
/// and third byte: many begin with `x-`.
struct FieldNameTable<Value: Sendable>: Sendable {
    /// A name, as a range of `bytes`.
    private struct Entry {
        let start: Int32
        let count: Int32
        let value: Value
    }

    private var bytes: [UInt8] = []
    private var entries: [Entry] = []
    /// The first entry of each slot, and the one after the last slot's: of names, then of beginnings.
    private var starts: [Int32] = []

    private static var slots: Int { 32 * 32 }

    /// - Parameters:
    ///   - names: In lower case, not empty; of equal ones the first counts.
    ///   - prefixes: Beginnings, of at least three bytes, of names that are not among `names`; the first that fits counts.
    init(_ names: [(String, Value)], prefixes: [(String, Value)] = []) {
        var sorted = [[(name: [UInt8], value: Value)]](repeating: [], count: 2 * Self.slots)
        for (name, value) in names where !name.isEmpty {
            let name = name.utf8.map(Self.folded)
            sorted[Self.slot(name[0], name.count)].append((name, value))
        }
        for (name, value) in prefixes where name.utf8.count > 2 {
            let name = name.utf8.map(Self.folded)
            sorted[Self.slots + Self.slot(name[0], Int(name[2]))].append((name, value))
        }
        for slot in sorted {
            starts.append(Int32(entries.count))
            for (name, value) in slot {
                entries.append(Entry(start: Int32(bytes.count), count: Int32(name.count), value: value))
                bytes += name
            }
        }
        starts.append(Int32(entries.count))
    }

    /// In lower case, with `-` for `_`: frameworks hand both to a program as one name (CGI, RFC 3875 §4.1.18).
    @inline(__always) private static func folded(_ byte: UInt8) -> UInt8 {
        byte == UInt8(ascii: "_") ? UInt8(ascii: "-") : FieldByte.lowercased(byte)
    }

    /// Upper and lower case letters share their lower five bits.
    private static func slot(_ first: UInt8, _ other: Int) -> Int { Int(first & 31) << 5 | other & 31 }

    /// The value of a name in any case, with `_` for `-`; nil if it is neither listed nor begins like a listed one.
    func value(of name: Span<UInt8>) -> Value? {
        guard !name.isEmpty else { return nil }
        let first = Self.folded(name[0])
        let whole = find(name, in: Self.slot(first, name.count), isWhole: true)
        guard whole == nil, name.count > 2 else { return whole }
        return find(name, in: Self.slots + Self.slot(first, Int(Self.folded(name[2]))), isWhole: false)
    }

    private func find(_ name: Span<UInt8>, in slot: Int, isWhole: Bool) -> Value? {
        var index = Int(starts[slot])
        let end = Int(starts[slot + 1])
        while index < end {
            let (start, count) = (Int(entries[index].start), Int(entries[index].count))
            if isWhole ? count == name.count : count <= name.count, isEqual(name, at: start, count: count) { return entries[index].value }
            index += 1
        }
        return nil
    }

    @inline(__always) private func isEqual(_ name: Span<UInt8>, at start: Int, count: Int) -> Bool {
        var place = count
        // From the end: beginnings are often the same.
        while place > 0 {
            place -= 1
            if Self.folded(name[place]) != bytes[start + place] { return false }
        }
        return true
    }
}
