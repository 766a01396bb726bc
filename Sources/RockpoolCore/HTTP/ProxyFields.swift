// What a proxy adds to messages that it forwards: Via (RFC 9110 §7.6.3), CDN-Loop (RFC 8586) and Max-Forwards, by which it detects loops,
// and `Cache-Status`.
package import HTTPTypes

/// The marks a proxy adds to forwarded messages.
package enum Via {
    /// Adds `version name` as the last member of Via. `version` is that of the message received, `1.1`; `name` is a token.
    package static func appended(to fields: inout HTTPFields, version: String, name: String) {
        fields.append(HTTPField(name: .via, value: "\(version) \(name)"))
    }

    /// Adds `name` to CDN-Loop of a request. A CDN customer's rules cannot remove this field, unlike Via.
    package static func appendedLoopMark(to fields: inout HTTPFields, name: String) {
        fields.append(HTTPField(name: .cdnLoop, value: name))
    }

    /// True if the message has passed here before: `name` received it according to Via, or is a member of CDN-Loop.
    package static func containsLoop(_ fields: HTTPFields, name: String) -> Bool {
        let name = name.lowercased()
        if fields.contains(.via), fields[values: .via].contains(where: { receivers(in: $0).contains(name) }) { return true }
        return fields.contains(.cdnLoop) && fields[values: .cdnLoop].contains { members(in: $0).contains(name) }
    }

    /// The second word of each member: `received-protocol RWS received-by [ RWS comment ]`.
    private static func receivers(in value: String) -> [String] {
        withoutComments(value).split(separator: ",").compactMap { member in
            member.split(omittingEmptySubsequences: true) { $0 == " " || $0 == "\t" }.dropFirst().first?.lowercased()
        }
    }

    /// The part before the parameters of each member: `cdn-id *( OWS ";" OWS parameter )`.
    private static func members(in value: String) -> [String] {
        value.split(separator: ",").compactMap { $0.split(separator: ";").first?.trimmingOWS().lowercased() }
    }

    /// Removes comments, because a comment may contain commas, quoted parentheses and this proxy's name (RFC 9110 §5.6.5).
    private static func withoutComments(_ value: String) -> String {
        guard value.utf8.contains(UInt8(ascii: "(")) else { return value }
        var depth = 0
        var isEscaped = false
        return String(
            value.filter { character in
                if depth > 0, isEscaped {
                    isEscaped = false
                    return false
                }
                switch character {
                case "(": depth += 1
                case ")" where depth > 0:
                    depth -= 1
                    return false
                case "\\" where depth > 0: isEscaped = true
                default: break
                }
                return depth == 0
            })
    }
}

/// The setting `send_via` (docs/reference/behaviour.md#via).
package enum SendVia: String, CaseIterable, Sendable, Codable { case auto, always, never }

/// What is known about one upstream. `Via` is left out of a request after an answer that should have been compressed, and stays out if that
/// helps.
package struct ViaHabit: Hashable, Sendable {
    private enum State: Hashable, Sendable {
        case unknown
        /// `Via` is left out until an answer of this type arrives.
        case trying(String)
        /// Compression depends on `Via`.
        case withheld(since: Timestamp)
        /// Compression does not depend on `Via`.
        case sent(since: Timestamp)
    }

    /// The time after which a finding is examined again.
    static let lasting = TimeSpan.days(1)
    /// Uncompressed bodies below this size mean nothing: servers leave small ones as they are.
    static let leastBody: Int64 = .kib(1)
    private static let typeLimit = 32

    private var state = State.unknown
    /// Types that are not compressed without `Via` either.
    private var plainTypes: Set<String> = []

    package init() {}

    /// True if the next request is sent without `Via`.
    package func withholds(at now: Timestamp) -> Bool {
        switch state {
        case .unknown, .sent: false
        case .trying: true
        case .withheld(let since): now - since < Self.lasting
        }
    }

    /// True if `Via` is left out because compression depends on it.
    package var isProved: Bool { if case .withheld = state { true } else { false } }

    /// Takes account of an answer to a read.
    package mutating func learn(from answer: ResponseHead, length: Int64?, to request: RequestHead, hadVia: Bool, now: Timestamp) {
        guard request.method == .get, answer.status == 200, let type = Self.compressibleType(answer.fields),
            request.fields[.acceptEncoding].map(Self.namesCoding) == true
        else { return }
        let coding = answer.fields[.contentEncoding].map { FieldList.trimmed($0[...]).lowercased() } ?? "identity"
        let isCompressed = coding != "identity"
        guard isCompressed || length ?? Self.leastBody >= Self.leastBody else { return }
        if case .sent(let since) = state, now - since >= Self.lasting { (state, plainTypes) = (.unknown, []) }
        switch (state, hadVia, isCompressed) {
        case (_, true, true): state = .sent(since: now)
        case (.withheld, true, false): state = .withheld(since: now)
        case (.unknown, true, false) where !plainTypes.contains(type) && plainTypes.count < Self.typeLimit: state = .trying(type)
        case (.trying, false, true): state = .withheld(since: now)
        case (.trying(type), false, false):
            plainTypes.insert(type)
            state = .unknown
        default: break
        }
    }

    private static func namesCoding(_ value: String) -> Bool {
        let codings: [StaticString] = ["gzip", "br", "zstd", "deflate"]
        return codings.contains { value.contains(anyCase: $0) }
    }

    /// The media type of a body that servers compress; nil for others, and where a change of the coding is forbidden (RFC 9111 §5.2.2.6).
    private static func compressibleType(_ fields: HTTPFields) -> String? {
        guard let type = MediaType.essence(of: fields) else { return nil }
        guard fields[.cacheControl]?.contains(anyCase: "no-transform") != true else { return nil }
        let isText = type.hasPrefix("text/") || ["json", "javascript", "xml"].contains { type.hasSuffix($0) }
        return isText && type != "text/event-stream" ? type : nil
    }
}

/// The action that Max-Forwards requires at this hop (RFC 9110 §7.6.2).
package enum MaxForwards: Hashable, Sendable {
    /// Forward the request.
    case forward
    /// This is the last recipient: respond here.
    case answer

    /// Decrements the field in `fields` for this hop. Only OPTIONS is counted (TRACE is not served); other methods forward the field
    /// unchanged. Throws a 400 for a value that is not one number.
    package static func counted(method: String, in fields: inout HTTPFields) throws(Refusal) -> MaxForwards {
        guard method == "OPTIONS", fields.contains(.maxForwards) else { return .forward }
        let values = fields[values: .maxForwards]
        guard values.count == 1, let digits = values.first.map({ Substring($0).trimmingOWS() }), digits.isDigits else {
            throw .badRequest("Max-Forwards is not one number")
        }
        let hops = Int(digits) ?? .max
        guard hops > 0 else { return .answer }
        fields[.maxForwards] = String(hops - 1)
        return .forward
    }
}

// MARK: - Cache-Status

/// One member of `Cache-Status`, appended to the members of upstream caches (RFC 9211, docs/reference/headers.md#cache-status).
package struct CacheStatus: Hashable, Sendable {
    /// The reason why the request was forwarded (RFC 9211 §2.2).
    package enum Forward: String, CaseIterable, Sendable, Codable {
        /// The cache was configured not to handle the request.
        case bypass
        /// The method's semantics require forwarding.
        case method
        /// Nothing is stored for the URI.
        case uriMiss = "uri-miss"
        /// The stored responses were selected by other values of the fields in their `Vary`.
        case varyMiss = "vary-miss"
        /// No usable response is stored, for an unspecified reason.
        case miss
        /// The request's directives did not allow the stored fresh response.
        case request
        /// The stored response was stale.
        case stale
        /// Only a part is stored.
        case partial
    }

    /// The name of this cache in the list, a token.
    package var cache: String
    package var hit: Bool
    /// Remaining freshness in seconds; negative when stale.
    package var ttl: Int64?
    package var fwd: Forward?
    /// The upstream's status, if it differs from the reply's.
    package var fwdStatus: Int?
    /// True if the upstream's response was stored.
    package var stored: Bool
    /// True if the request shared the fetch of another request.
    package var collapsed: Bool
    /// The reason, if the other parameters do not give it.
    package var detail: String?

    package init(
        cache: String = "rockpool", hit: Bool, ttl: Int64? = nil, fwd: Forward? = nil, fwdStatus: Int? = nil, stored: Bool = false,
        collapsed: Bool = false, detail: String? = nil
    ) {
        self.cache = cache
        self.hit = hit
        self.ttl = ttl
        self.fwd = fwd
        self.fwdStatus = fwdStatus
        self.stored = stored
        self.collapsed = collapsed
        self.detail = detail
    }

    /// The member in field syntax: `rockpool; hit; ttl=57`.
    package var fieldValue: String {
        var text = cache
        if hit { text += "; hit" }
        if let fwd { text += "; fwd=\(fwd.rawValue)" }
        if let fwdStatus { text += "; fwd-status=\(fwdStatus)" }
        if let ttl { text += "; ttl=\(ttl)" }
        if stored { text += "; stored" }
        if collapsed { text += "; collapsed" }
        if let detail { text += "; detail=\(StructuredText.bareItem(detail))" }
        return text
    }
}
