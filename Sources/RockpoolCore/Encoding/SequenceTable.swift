// A table by the sequence of operations, for what is kept of each waiting write.

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
