// Small containers, and a hash that is the same at every start.

/// Values by sequence. The sequences of open operations lie close together, so a page holds those of sixteen: a dictionary of single values
/// has room for up to three times as many as it holds.
package struct SequenceTable<Value> {
    private static var width: Int64 { 16 }

    private var pages: [Int64: [Value?]] = [:]
    /// The number of values.
    package private(set) var count = 0

    /// An empty table.
    package init() {}

    /// The value of a sequence; nil without one.
    package subscript(sequence: Int64) -> Value? {
        get { pages[Self.page(of: sequence)]?[Self.slot(of: sequence)] }
        _modify {
            let (page, slot) = (Self.page(of: sequence), Self.slot(of: sequence))
            let before = pages[page]?[slot] == nil ? 0 : 1
            yield &pages[page, default: Array(repeating: nil, count: Int(Self.width))][slot]
            let after = pages[page]?[slot] == nil ? 0 : 1
            count += after - before
            if after == 0, pages[page]?.allSatisfy({ $0 == nil }) == true { pages[page] = nil }
        }
    }

    /// The values with their sequences, in no order.
    package var all: some Sequence<(sequence: Int64, value: Value)> {
        pages.lazy.flatMap { page, values in
            values.enumerated().compactMap { slot, value in value.map { (sequence: page * Self.width + Int64(slot), value: $0) } }
        }
    }

    private static func page(of sequence: Int64) -> Int64 { sequence >> width.trailingZeroBitCount }

    private static func slot(of sequence: Int64) -> Int { Int(sequence & (width - 1)) }
}

extension SequenceTable: Sendable where Value: Sendable {}

/// A value that lies in memory of its own: a copy of the box costs one reference count, whatever the value holds. It is copied when a box
/// that is not the only one is changed.
package struct Boxed<Value> {
    private final class Storage {
        var value: Value

        init(_ value: Value) { self.value = value }
    }

    private var storage: Storage

    package init(_ value: Value) { storage = Storage(value) }

    package var value: Value {
        _read { yield storage.value }
        _modify {
            if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage.value) }
            yield &storage.value
        }
    }
}

// @unchecked Sendable: what boxes share is never changed.
extension Boxed: @unchecked Sendable where Value: Sendable {}

extension Boxed: Equatable where Value: Equatable {
    package static func == (a: Boxed, b: Boxed) -> Bool { a.storage === b.storage || a.value == b.value }
}

extension Boxed: Hashable where Value: Hashable {
    package func hash(into hasher: inout Hasher) { hasher.combine(value) }
}

/// The hash of the bytes that were added so far.
package struct FNV1a: Sendable {
    package private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

    package init() {}

    package mutating func add(_ bytes: some Sequence<UInt8>) { for byte in bytes { add(byte) } }

    package mutating func add(_ byte: UInt8) { value = (value ^ UInt64(byte)) &* 0x100_0000_01B3 }
}
