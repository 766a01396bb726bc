// The target of a pull, from a template with `{cursor}` (docs/reference/configuration.md#delta `delta.query`, `sync.pull`; RFC 3986 §2.1).

/// A path and query with a placeholder for the cursor.
package struct DeltaTemplate: Hashable, Sendable {
    private let path: Substring
    private let parameters: [Substring]

    /// - Parameter text: such as `/v1/notes?updatedAfter={cursor}&limit=100`.
    package init(_ text: String) {
        path = text.prefix { $0 != "?" }
        parameters = text.dropFirst(path.count + 1).split(separator: "&")
    }

    /// Returns the target that requests the changes after `cursor`. Without a cursor it requests everything: parameters with the
    /// placeholder are omitted.
    package func target(after cursor: String?) -> String {
        let encoded = cursor.map(Self.encoded)
        let query = parameters.compactMap { parameter -> String? in
            guard parameter.contains(Self.place) else { return String(parameter) }
            return encoded.map { String(parameter).replacing(Self.place, with: $0) }
        }
        return query.isEmpty ? String(path) : path + "?" + query.joined(separator: "&")
    }

    private static let place = "{cursor}"

    /// Percent-encodes all but the unreserved characters.
    static func encoded(_ text: String) -> String {
        let hex = Array("0123456789ABCDEF".utf8)
        let bytes = text.utf8.flatMap { byte -> [UInt8] in
            isUnreserved(byte) ? [byte] : [UInt8(ascii: "%"), hex[Int(byte >> 4)], hex[Int(byte & 15)]]
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        FieldByte.isLetter(byte) || FieldByte.isDigit(byte) || [0x2D, 0x2E, 0x5F, 0x7E].contains(byte)
    }
}
