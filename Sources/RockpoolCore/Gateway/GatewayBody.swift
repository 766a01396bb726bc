// URLs of the origin in JSON bodies, as clients of a gateway must see them (`gateway.rewrite_bodies`; docs/guide/clients.md#gateways).
package import HTTPTypes

/// The kinds of bodies that a gateway may change.
package enum BodyRewriting: String, CaseIterable, Sendable, Codable {
    /// Values of JSON that are a URL of the origin.
    case links
    /// Strings of JSON that begin with the origin's URL.
    case jsonURLs = "json-urls"
}

extension GatewayAddress {
    /// Maximum number of bytes of a body that is changed; a longer one is passed on as it is.
    package static let bodyLimit: Int = .mib(8)

    /// Returns a JSON text of the upstream with the gateway's address; nil if it names the origin nowhere.
    package func outward(json: [UInt8]) -> [UInt8]? { Self.replacing(originBase, by: base, in: json) }

    /// Returns a JSON text of a client with the origin's address; nil if it names the gateway nowhere.
    package func inward(json: [UInt8]) -> [UInt8]? { Self.replacing(base, by: originBase, in: json) }

    /// Replaces a URL's beginning at the start of strings, with or without escaped slashes. All other bytes stay as they are.
    private static func replacing(_ old: String, by new: String, in json: [UInt8]) -> [UInt8]? {
        let escape = { (text: String) in text.split(separator: "/", omittingEmptySubsequences: false).joined(separator: "\\/") }
        let plain = (Array("\"\(old)".utf8), Array("\"\(new)".utf8))
        let escaped = (Array("\"\(escape(old))".utf8), Array("\"\(escape(new))".utf8))
        var result: [UInt8] = []
        var (kept, index) = (0, 0)
        while index < json.count {
            guard json[index] == FieldByte.quote,
                let (found, by) = [plain, escaped].first(where: { matches($0.0, at: index, in: json) })
            else {
                index += 1
                continue
            }
            result += json[kept..<index] + by
            index += found.count
            kept = index
        }
        return kept == 0 ? nil : result + json[kept...]
    }

    /// True if `text` stands at `index` and its authority ends there.
    private static func matches(_ text: [UInt8], at index: Int, in json: [UInt8]) -> Bool {
        let end = index + text.count
        guard end < json.count, json[index..<end].elementsEqual(text) else { return false }
        return "\"/?#\\".utf8.contains(json[end])
    }
}

/// Replaces each value of a JSON text that is a URL of the one side by that of the other (`gateway.rewrite_bodies: [links]`). The text
/// comes in parts; all other bytes stay.
package struct GatewayLinks: Sendable {
    package enum Direction: Sendable {
        /// URLs of the origin become the gateway's.
        case outward
        /// URLs of the gateway become the origin's.
        case inward
    }

    private enum Place {
        case outside
        /// In a string that is no URL of the one side. True after a backslash.
        case text(Bool)
        /// In a string that may be one; it is held from its quote on.
        case candidate(Bool)
        /// Behind such a string: a colon would make it a name.
        case closed
    }

    /// The largest body in bytes whose links are replaced, where its length is known.
    package static let bodyLimit: Int = .mib(1)
    /// The longest URL that is replaced, with its quotes and the space up to the next character.
    private static let linkLimit = Int.kib(4)

    private let gateway: GatewayAddress
    private let direction: Direction
    private var place = Place.outside
    private var held: [UInt8] = []
    /// The index behind the closing quote in `held`.
    private var end = 0
    /// True once something was replaced.
    private(set) var hasReplaced = false

    package init(_ gateway: GatewayAddress, _ direction: Direction) { (self.gateway, self.direction) = (gateway, direction) }

    /// Returns a whole text with the other side's URLs; nil if it has none of the one side.
    package static func replaced(_ json: [UInt8], by gateway: GatewayAddress, _ direction: Direction) -> [UInt8]? {
        guard gateway.isNamed(in: json.span, direction) else { return nil }
        var links = GatewayLinks(gateway, direction)
        let result = links.pass(json) + links.finish()
        return links.hasReplaced ? result : nil
    }

    // MARK: parts

    /// Takes a part of the text.
    /// - Returns: what is passed on.
    package mutating func pass(_ part: some Collection<UInt8>) -> [UInt8] {
        var passed: [UInt8] = []
        passed.reserveCapacity(part.count + held.count)
        for byte in part {
            switch place {
            case .outside: take(byte, to: &passed)
            case .text(let isEscaped):
                passed.append(byte)
                if isEscaped { place = .text(false) } else { place = byte == FieldByte.quote ? .outside : .text(byte == Self.backslash) }
            case .candidate(let isEscaped):
                held.append(byte)
                place = next(byte, isEscaped: isEscaped)
                switch place {
                case .closed: end = held.count
                case .text, .outside: release(to: &passed)
                case .candidate: break
                }
            case .closed:
                if [0x20, 0x09, 0x0A, 0x0D].contains(byte), held.count < Self.linkLimit {
                    held.append(byte)
                } else {
                    if byte == UInt8(ascii: ":") { release(to: &passed) } else { passed += replacement() }
                    place = .outside
                    take(byte, to: &passed)
                }
            }
        }
        return passed
    }

    /// Ends the text.
    /// - Returns: what was held.
    package mutating func finish() -> [UInt8] {
        guard case .closed = place else { return held }
        return replacement()
    }

    private static let backslash = UInt8(ascii: "\\")

    private mutating func take(_ byte: UInt8, to passed: inout [UInt8]) {
        guard byte == FieldByte.quote else { return passed.append(byte) }
        held.append(byte)
        place = .candidate(false)
    }

    /// The place behind a byte of a string that may be a URL.
    private func next(_ byte: UInt8, isEscaped: Bool) -> Place {
        if isEscaped { return byte == UInt8(ascii: "/") || byte == UInt8(ascii: "u") ? .candidate(false) : .text(false) }
        if byte == FieldByte.quote { return held.count == 2 ? .outside : .closed }
        // A URL has no spaces, and begins with `http`.
        guard 0x21...0x7E ~= byte, held.count < Self.linkLimit, held.count != 2 || byte | 0x20 == UInt8(ascii: "h") else {
            return .text(byte == Self.backslash)
        }
        return .candidate(byte == Self.backslash)
    }

    private mutating func release(to passed: inout [UInt8]) {
        passed += held
        held.removeAll(keepingCapacity: true)
    }

    private mutating func replacement() -> [UInt8] {
        defer { held.removeAll(keepingCapacity: true) }
        guard let link = gateway.replacement(of: held[1..<(end - 1)], direction) else { return held }
        hasReplaced = true
        return [FieldByte.quote] + link + held[(end - 1)...]
    }
}

extension GatewayAddress {
    /// True if the bytes contain the name by which URLs of the one side begin.
    package func isNamed(in bytes: Span<UInt8>, _ direction: GatewayLinks.Direction) -> Bool {
        let name: [UInt8] =
            switch direction {
            case .outward: Array(origin.host.utf8)
            case .inward: Array(authority.utf8)
            }
        guard let first = name.first, bytes.count >= name.count else { return false }
        for start in 0...(bytes.count - name.count) where bytes[start] == first {
            var index = 1
            while index < name.count, bytes[start + index] == name[index] { index += 1 }
            if index == name.count { return true }
        }
        return false
    }

    /// True if the links of such a body may be replaced: nothing speaks for its exact bytes.
    package static func mayReplaceLinks(of fields: HTTPFields) -> Bool {
        MediaType.isJSON(fields) && !CacheControl(fields).noTransform && !fields.contains { isOfExactBytes($0.name.canonicalName) }
    }

    /// True for a field that says something about the exact bytes of a body: a digest or a signature, also in fields of one API.
    private static func isOfExactBytes(_ name: String) -> Bool {
        name == "content-md5" || name == "x-goog-hash" || exactEnds.contains { name.hasSuffix($0) }
            || exactWords.contains { WordSearch.finds($0, in: name.utf8.span) }
    }

    private static let exactEnds = ["sha256", "sha512"]
    private static let exactWords: [StaticString] = ["digest", "signature", "hmac", "checksum", "integrity"]

    /// Returns the other side's URL for the raw content of a JSON string; nil if it is no URL of the one side.
    fileprivate func replacement(of raw: ArraySlice<UInt8>, _ direction: GatewayLinks.Direction) -> [UInt8]? {
        guard let colon = raw.firstIndex(of: UInt8(ascii: ":")), colon - raw.startIndex <= 5 else { return nil }
        let (plain, escaped) = (Array("//".utf8), Array(#"\/\/"#.utf8))
        let behind = raw[raw.index(after: colon)...]
        let isEscaped = behind.starts(with: escaped)
        guard isEscaped || behind.starts(with: plain) else { return nil }
        let scheme = String(decoding: raw[...colon], as: UTF8.self).lowercased()
        let rest = behind.dropFirst(isEscaped ? escaped.count : plain.count)
        let authority = rest.prefix { !"/?#\\".utf8.contains($0) }
        let named = String(decoding: authority, as: UTF8.self)
        let write = { (text: String) in Array((isEscaped ? text.replacing("/", with: #"\/"#) : text).utf8) }
        let (removed, base): (String, String)
        switch direction {
        case .outward:
            guard scheme == "http:" || scheme == "https:", isOrigins(named[...], scheme: scheme) else { return nil }
            (removed, base) = (basePath, self.base)
        case .inward:
            guard "\(scheme)//\(named.lowercased())" == root.lowercased() else { return nil }
            (removed, base) = (prefix, originBase)
        }
        let path = rest.dropFirst(authority.count)
        let expected = write(removed)
        guard path.starts(with: expected) else { return nil }
        let left = path.dropFirst(expected.count)
        guard expected.isEmpty || left.first.map({ "/?#\\".utf8.contains($0) }) ?? true else { return nil }
        return write(base) + left
    }
}
