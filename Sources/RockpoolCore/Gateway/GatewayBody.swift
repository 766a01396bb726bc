// URLs of the origin in JSON bodies, as clients of a gateway must see them (`gateway.rewrite_bodies`; docs/guide/clients.md#gateways).

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
