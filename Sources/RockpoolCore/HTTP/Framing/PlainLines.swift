// The field lines of a plain head by their places in the received bytes, and by what is done with them (docs/architecture.md#relays).

package import HTTPTypes

/// The lines of a plain head in their order, without `Host` and the framing. Offsets fit into 16 bits, because longer heads are decoded.
package struct PlainLines: Sendable {
    /// What the decision about a request makes of a line.
    package enum Kind: Sendable {
        /// The decision may depend on it.
        case read
        /// No decision depends on it: it is passed on.
        case free
        /// It may identify the principal, or selects.
        case credential
    }

    private struct Line {
        var name: UInt16 = 0
        var nameEnd: UInt16 = 0
        var valueEnd: UInt16 = 0
    }

    /// Maximum number of lines; heads with more are decoded.
    package static let limit = 32

    private var lines = InlineArray<32, Line>(repeating: Line())
    package private(set) var count = 0
    /// One bit for each line.
    private var credentials: UInt32 = 0
    private var free: UInt32 = 0

    /// - Returns: false if there is no room for the line.
    mutating func append(name: Range<Int>, value: Range<Int>, _ kind: Kind) -> Bool {
        guard count < Self.limit else { return false }
        switch kind {
        case .read: break
        case .free: free |= 1 << UInt32(count)
        case .credential: credentials |= 1 << UInt32(count)
        }
        lines[count] = Line(name: UInt16(name.lowerBound), nameEnd: UInt16(name.upperBound), valueEnd: UInt16(value.upperBound))
        count += 1
        return true
    }

    // MARK: one line

    package func kind(at index: Int) -> Kind {
        let bit: UInt32 = 1 << UInt32(index)
        return free & bit != 0 ? .free : credentials & bit != 0 ? .credential : .read
    }

    package func name(at index: Int) -> Range<Int> { Int(lines[index].name)..<Int(lines[index].nameEnd) }

    package func value(at index: Int) -> Range<Int> { (Int(lines[index].nameEnd) + 2)..<Int(lines[index].valueEnd) }

    /// The line from its name to its end: CR and LF.
    package func whole(at index: Int) -> Range<Int> { Int(lines[index].name)..<(Int(lines[index].valueEnd) + 2) }

    // MARK: credentials

    package var hasCredential: Bool { credentials != 0 }

    /// The lines of the fields that may identify the principal, from the name to the end of the value, in order.
    package var credentialLines: [Range<Int>] {
        (0..<count).compactMap { kind(at: $0) == .credential ? Int(lines[$0].name)..<Int(lines[$0].valueEnd) : nil }
    }

    /// True if the lines of the fields that may identify the principal, one after the other, are `expected`.
    package func hasCredential(_ expected: [UInt8], in bytes: Span<UInt8>) -> Bool {
        var position = 0
        for index in 0..<count where credentials & 1 << UInt32(index) != 0 {
            for place in Int(lines[index].name)..<Int(lines[index].valueEnd) {
                guard position < expected.count, bytes[place] == expected[position] else { return false }
                position += 1
            }
            guard position < expected.count, expected[position] == 0x0A else { return false }
            position += 1
        }
        return position == expected.count
    }

    // MARK: one name

    /// The range of the value of the field with this lower-case name: nil if it is absent, empty if it is repeated.
    package func value(of name: [UInt8], in bytes: Span<UInt8>) -> Range<Int>? {
        var found: Range<Int>?
        for index in 0..<count {
            let line = lines[index]
            let start = Int(line.name)
            guard Int(line.nameEnd) - start == name.count, PlainFields.isEqual(bytes, at: start, to: name) else { continue }
            if found != nil { return 0..<0 }
            found = Int(line.nameEnd) + 2..<Int(line.valueEnd)
        }
        return found
    }
}

/// Makes fields of lines. Most requests of a shape have the same names in the same places, which then need not be parsed again.
package struct PlainLineNames: Sendable {
    private let names: [(bytes: [UInt8], name: HTTPField.Name)?]

    /// - Parameter lines: of an example.
    package init(of lines: PlainLines, in bytes: Span<UInt8>) {
        names = (0..<lines.count).map { index in
            var name: [UInt8] = []
            name.append(bytes, lines.name(at: index))
            return HTTPField.Name(String(decoding: name, as: UTF8.self)).map { (name, $0) }
        }
    }

    /// Returns the fields of these kinds, in their order.
    package func fields(of lines: PlainLines, in bytes: Span<UInt8>, _ kinds: PlainLines.Kind...) -> [HTTPField] {
        (0..<lines.count).compactMap { index in
            guard kinds.contains(lines.kind(at: index)), let name = name(at: index, of: lines, in: bytes) else { return nil }
            return HTTPField(name: name, value: Self.text(bytes, lines.value(at: index)))
        }
    }

    private func name(at index: Int, of lines: PlainLines, in bytes: Span<UInt8>) -> HTTPField.Name? {
        let range = lines.name(at: index)
        if index < names.count, let known = names[index], PlainFields.isExactly(bytes, at: range, known.bytes) { return known.name }
        return HTTPField.Name(Self.text(bytes, range))
    }

    private static func text(_ bytes: Span<UInt8>, _ range: Range<Int>) -> String {
        unsafe bytes.extracting(range).withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    }
}

extension HTTPField.Name {
    /// What the decision about a plain request makes of a line with this name.
    package var plainKind: PlainLines.Kind {
        switch PlainFields.role(of: canonicalName.utf8.span, value: [UInt8]().span) {
        case .free: .free
        case .credential: .credential
        case .host, .ifNoneMatch, .ifModifiedSince, .range, .decides, .none: .read
        }
    }
}
