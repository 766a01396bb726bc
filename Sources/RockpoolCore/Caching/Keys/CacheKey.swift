// The key of a cache entry: delimited parts, so that two different requests never share one text (RFC 9111 §2, docs/caching.md#cache-key
// *Keys*).
import HTTPTypes

/// The key of a set of variants. The target holds the exact bytes sent upstream: nothing is sorted, dropped or decoded.
package struct CacheKey: Hashable, Sendable {
    /// `method LF origin LF target LF identity LF body`; no part can contain a line feed.
    package let text: String

    /// - Parameters:
    ///   - method: HEAD uses the key of GET.
    ///   - identity: The partition's name, empty for the shared one.
    ///   - body: A digest of the request's body on routes that cache by body; else empty.
    package init(method: String, origin: OriginAddress, target: String, identity: String = "", body: String = "") {
        self.init(method: method, at: Place(origin: origin, target: target), identity: identity, body: body)
    }

    /// The key of a request at a place, in one partition.
    package init(method: String, at place: Place, identity: String = "", body: String = "") {
        var text = method == "HEAD" ? "GET" : Self.escaped(method)
        text.reserveCapacity(text.utf8.count + place.text.utf8.count + identity.utf8.count + body.utf8.count + 1)
        text += place.text
        if !identity.isEmpty { text += Self.escaped(identity) }
        text += "\n"
        if !body.isEmpty { text += Self.escaped(body) }
        self.text = text
    }

    /// The key of a request in one partition.
    package init(_ request: RequestHead, identity: String = "", body: String = "") {
        self.init(method: request.method.rawValue, origin: request.origin, target: request.target, identity: identity, body: body)
    }

    /// The same request's key in another partition.
    package init(_ key: CacheKey, in partition: StoragePartition) {
        text = [key.part(0), key.part(1), key.part(2), partition.name, key.part(4)].joined(separator: "\n")
    }

    /// The key under which the head of a response to HEAD is stored where nothing of the response to GET is.
    package var ofHead: CacheKey { CacheKey(checked: "HEAD" + text[(text.firstIndex(of: "\n") ?? text.endIndex)...]) }

    private init(checked text: String) { self.text = text }

    /// Restores a key from its text.
    package init?(text: String) {
        guard text.utf8.count(where: { $0 == 0x0A }) == 4 else { return nil }
        self.text = text
    }

    /// The absolute URI.
    package var url: String { part(1) + part(2) }
    package var method: String { part(0) }
    /// True if a head without its content is stored under the key.
    package var isOfHead: Bool { text.utf8.starts(with: "HEAD\n".utf8) }
    /// True for the key of a response to GET or HEAD.
    package var isOfGet: Bool { text.utf8.starts(with: "GET\n".utf8) || isOfHead }
    /// Path and query.
    package var target: String { part(2) }
    /// The partition's name; empty for the shared one.
    package var identity: String { part(3) }

    /// All parts with their names, in the order of the text.
    package var parts: [(name: String, value: String)] {
        ["method", "origin", "target", "identity", "body"].enumerated().map { ($1, part($0)) }
    }

    /// The partition that holds the entry.
    package var partition: StoragePartition { identity.isEmpty ? .shared : .identity(identity) }

    private func part(_ index: Int) -> String {
        var start = text.utf8.startIndex
        for _ in 0..<index {
            guard let end = text.utf8[start...].firstIndex(of: 0x0A) else { return "" }
            start = text.utf8.index(after: end)
        }
        return String(text[start..<(text.utf8[start...].firstIndex(of: 0x0A) ?? text.utf8.endIndex)])
    }

    /// Line feeds are rejected much earlier; if one gets here, it still must not end its part.
    fileprivate static func escaped(_ part: String) -> String {
        guard part.utf8.contains(0x0A) else { return part }
        return part.utf8.split(separator: 0x0A, omittingEmptySubsequences: false).map { String(Substring($0)) }.joined(separator: "%0A")
    }
}

extension CacheKey {
    /// The parts of a key that the requests at one URL have in common.
    package struct Place: Hashable, Sendable {
        /// `LF origin LF target LF`.
        fileprivate let text: String

        package init(origin: OriginAddress, target: String) {
            let url = origin.url
            var text = "\n"
            text.reserveCapacity(url.utf8.count + target.utf8.count + 3)
            text += CacheKey.escaped(url)
            text += "\n"
            text += CacheKey.escaped(target)
            text += "\n"
            self.text = text
        }
    }
}
