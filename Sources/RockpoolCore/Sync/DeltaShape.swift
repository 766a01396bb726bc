// The request template of a pull and the pointers into its response, from a resource's description (docs/reference/configuration.md#delta
// `delta`, `sync`).

/// The request and response format of the changes of one resource.
package struct DeltaShape: Hashable, Sendable {
    /// The template of the request targets.
    package let template: DeltaTemplate
    /// The array of existing and changed items.
    let items: JSONPointer
    /// The array of deleted items beside `items`; nil where there is none.
    let tombstones: JSONPointer?
    /// The cursor that the upstream issues in the body.
    let issued: JSONPointer
    /// The flag in the body that a further page follows.
    let more: JSONPointer
    /// The id within an item.
    let id: JSONPointer
    /// The version within an item; nil where the version is an ETag.
    let version: JSONPointer?
    /// The value within an item that orders changes; nil where only the upstream's issued cursor orders them.
    let moment: JSONPointer?
    /// The marker within an item that was deleted.
    let deleted: JSONPointer?

    /// True if pages name deleted entities, so that they may state when each was deleted.
    package var statesDeletions: Bool { deleted != nil || tombstones != nil }

    /// Uses the since-pull where the API has one, otherwise its list by `delta`. Nil when the resource has neither, or is nested below a
    /// parent whose id is unknown.
    package init?(_ resource: Resource) {
        guard !resource.isSingleton, !resource.collection.contains("{"), resource.path(of: "").contains("{") == false else { return nil }
        let (delta, sync) = (resource.delta, resource.sync)
        if let sync, let pull = sync.pull {
            template = DeltaTemplate(pull)
            items = .place(sync.items)
            tombstones = .place(sync.tombstones)
            issued = .place(sync.cursor)
            more = .place(sync.more)
        } else if let delta {
            template = DeltaTemplate("\(resource.collection)?\(delta.query)")
            items = .place(resource.items)
            tombstones = nil
            issued = .place("/cursor")
            more = .place("/hasMore")
        } else {
            return nil
        }
        id = .place(resource.id)
        version = resource.version == "etag" ? nil : .place(resource.version)
        moment = (delta?.cursor ?? resource.updatedAt).map(JSONPointer.place)
        deleted = delta?.deleted.map(JSONPointer.place)
    }
}

extension JSONPointer {
    /// Converts a pointer of the configuration, which has validated it.
    static func place(_ text: String) -> JSONPointer { JSONPointer(text) ?? JSONPointer(tokens: [text]) }
}

extension JSONValue {
    /// The text of an id or a version, which APIs write as a string or as a number.
    var identifier: String? { string ?? number?.literal }

    /// True if a marker such as `deletedAt` is set.
    var isMarked: Bool {
        switch self {
        case .null, .bool(false), .string(""): false
        default: true
        }
    }
}

// MARK: - Template

/// A path and query with a placeholder for the cursor (docs/reference/configuration.md#delta `delta.query`, `sync.pull`; RFC 3986 §2.1).
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

// MARK: - Cursor

/// A position in an upstream's change history (docs/outbox.md#delta-pull; docs/reference/configuration.md#delta `cursor`).
package struct DeltaCursor: Hashable, Sendable {
    /// The kind of a cursor's text.
    package enum Kind: String, CaseIterable, Sendable {
        /// Opaque: issued by the upstream to be sent back.
        case issued
        /// The latest time stamp seen in items: RFC 3339, or an integer of seconds or of milliseconds.
        case time, seconds, milliseconds
        /// The greatest counter or text seen in items that is not a time stamp.
        case number, text
    }

    /// The kind of `text`.
    package let kind: Kind
    /// The cursor as the upstream wrote it.
    package let text: String

    /// The overlap subtracted from time stamps in requests, because commits become visible out of the order of their time stamps.
    package static let overlap = TimeSpan.minutes(1)

    /// Creates a cursor that the upstream issued. Nil when empty.
    package init?(issued text: String) {
        guard !text.isEmpty else { return nil }
        self.init(kind: .issued, text: text)
    }

    /// Creates a cursor from the cursor member of an item. Nil for values without an order: `null`, fractions, objects.
    package init?(member value: JSONValue) {
        if let integer = value.integer ?? value.string.flatMap({ Int64($0) }) {
            self.init(kind: Self.kind(of: integer), text: String(integer))
        } else if let text = value.string, !text.isEmpty {
            self.init(kind: RFC3339.parse(text) == nil ? .text : .time, text: text)
        } else {
            return nil
        }
    }

    /// Parses a cursor from the format of `stored`.
    package init?(stored: String) {
        let words = stored.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
        guard words.count == 2, let kind = Kind(rawValue: String(words[0])) else { return nil }
        self.init(kind: kind, text: String(words[1]))
    }

    private init(kind: Kind, text: String) {
        self.kind = kind
        self.text = text
    }

    /// The cursor's storage format.
    package var stored: String { "\(kind.rawValue) \(text)" }

    /// Returns the request parameter: a time stamp minus the overlap, in the upstream's own format; any other kind unchanged.
    package func asked(overlap: TimeSpan = DeltaCursor.overlap) -> String {
        switch kind {
        case .time: RFC3339.parse(text).map { RFC3339.format($0 - overlap) } ?? text
        case .seconds: Int64(text).map { String($0.subtractedClamped(overlap.seconds)) } ?? text
        case .milliseconds: Int64(text).map { String($0.subtractedClamped(overlap.milliseconds)) } ?? text
        case .issued, .number, .text: text
        }
    }

    /// Returns the later of two cursors. Cursors of different kinds have no order, so the result is the second, which was seen later.
    package static func later(_ a: DeltaCursor?, _ b: DeltaCursor?) -> DeltaCursor? {
        guard let a, let b else { return b ?? a }
        return a.isAfter(b) ? a : b
    }

    private func isAfter(_ other: DeltaCursor) -> Bool {
        if let moment, let another = other.moment { return moment > another }
        guard kind == other.kind else { return false }
        switch kind {
        case .number: return (Int64(text) ?? 0) > (Int64(other.text) ?? 0)
        case .text: return other.text.utf8.lexicographicallyPrecedes(text.utf8)
        case .issued, .time, .seconds, .milliseconds: return false
        }
    }

    /// The time that it names; nil for any other kind.
    var moment: Timestamp? {
        switch kind {
        case .time: RFC3339.parse(text)
        case .seconds: Int64(text).map { Timestamp(seconds: $0) }
        case .milliseconds: Int64(text).map { Timestamp(milliseconds: $0) }
        case .issued, .number, .text: nil
        }
    }

    /// Classifies an integer: from 1e11 on milliseconds since 1970 (1973 or later), from 1e8 on seconds since 1970 (1973 or later), below
    /// that a version counter.
    private static func kind(of integer: Int64) -> Kind {
        switch integer {
        case 100_000_000_000...: .milliseconds
        case 100_000_000...: .seconds
        default: .number
        }
    }
}
