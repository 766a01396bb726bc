// One stored variant as used by reuse decisions: its head, its times, the values every decision needs, parsed once, and the identity of
// its body.
package import HTTPTypes
import RawStructuredFieldValues

/// A stored response without its body.
package struct StoredResponse: Hashable, Sendable {
    /// The stored head: without hop-by-hop fields and `Set-Cookie`.
    package var head: ResponseHead {
        didSet { validity = Validity(head, requestTime: requestTime, responseTime: responseTime) }
    }
    /// The request's fields named by `Vary`, normalised; fields absent from the request are missing.
    package var requestFields: HTTPFields {
        didSet { keptRule = requestFields[.rockpoolLifetime].flatMap(LifetimeRule.init) }
    }
    /// The time the request was sent (RFC 9111 §4.2.3).
    package var requestTime: Timestamp {
        didSet { validity = Validity(head, requestTime: requestTime, responseTime: responseTime) }
    }
    /// When its request, or that of its last 304, was sent, in the order of ticks.
    package var asked: Tick
    /// The time the response's head, or that of its last 304, was received.
    package var responseTime: Timestamp {
        didSet { validity = Validity(head, requestTime: requestTime, responseTime: responseTime) }
    }
    /// Bytes stored.
    package var bodyLength: Int64
    /// The category's name.
    package var category: String
    /// The lifetime of a response without explicit freshness, set by a category that a route named.
    package var assignedTTL: TimeSpan?
    /// True after an unsafe request to its URI succeeded: it must be revalidated before reuse (RFC 9111 §4.4). It is kept, because while
    /// the upstream is unreachable it is the best response available.
    package var isInvalidated = false
    /// The mark of an own write that was answered after the copy was fetched; nil without one.
    package var ownWrite: OwnWriteMark?
    /// True if only the head is stored, from a response to HEAD: it answers HEAD while the upstream is unreachable.
    package var isHeadOnly = false
    /// The freshness data of its fields, parsed when they are set, so that a hit parses nothing.
    package private(set) var validity: Validity
    /// `lifetimeRule`, parsed when its field is set.
    private var keptRule: LifetimeRule?

    package init(
        head: ResponseHead, requestFields: HTTPFields = [:], requestTime: Timestamp, asked: Tick = .first, responseTime: Timestamp,
        bodyLength: Int64 = 0, category: String = CacheCategory.important.name, assignedTTL: TimeSpan? = nil
    ) {
        self.head = head
        self.requestFields = requestFields
        (self.requestTime, self.asked) = (requestTime, asked)
        self.responseTime = responseTime
        self.bodyLength = bodyLength
        self.category = category
        self.assignedTTL = assignedTTL
        validity = Validity(head, requestTime: requestTime, responseTime: responseTime)
        keptRule = requestFields[.rockpoolLifetime].flatMap(LifetimeRule.init)
    }

    /// The response after a 304 that has repeated its fields, but for `Date`: what was parsed of the others stays.
    init(_ former: StoredResponse, dated dates: [String], sent: Moment, responseTime: Timestamp) {
        var head = former.head
        head.fields[values: .date] = dates
        self.head = head
        (requestFields, keptRule) = (former.requestFields, former.keptRule)
        (requestTime, asked, self.responseTime) = (sent.at, sent.tick, responseTime)
        (bodyLength, category, assignedTTL) = (former.bodyLength, former.category, former.assignedTTL)
        validity = Validity(former.validity, head, requestTime: sent.at, responseTime: responseTime)
    }

    /// Replaces the fields by which it was selected. What is kept beside them stays.
    package mutating func select(_ fields: HTTPFields) {
        var fields = fields
        for name in [HTTPField.Name.rockpoolOwner, .rockpoolPack, .rockpoolLifetime] { fields[name] = requestFields[name] }
        requestFields = fields
    }

    /// The lifetimes that its route sets; nil if it sets none.
    package internal(set) var lifetimeRule: LifetimeRule? {
        get { keptRule }
        set { requestFields[.rockpoolLifetime] = newValue?.text }
    }

    /// The identity that a shared response answered, where only the promise to validate it permits sharing (RFC 9111 §3.5).
    package var owner: String? {
        get { requestFields[.rockpoolOwner] }
        set { requestFields[.rockpoolOwner] = newValue }
    }

    /// True if a client may be given the response: the one that it answered, or any while it is fresh. A stale one would have to be validated for
    /// each of the others; they get answers and copies of their own instead.
    /// - Parameter names: the names of the client's identity.
    package func isReadable(by names: [String?], now: Timestamp) -> Bool {
        guard let owner, !names.contains(owner) else { return true }
        return Freshness.of(self, now: now).isFresh && directives.noCache != .all
    }

    /// The directives that govern it.
    package var directives: CacheControl {
        guard isInvalidated || isDirty else { return lastingDirectives }
        var directives = lastingDirectives
        directives.noCache = .all
        return directives
    }
    /// The same, but for what writes have made of it.
    var lastingDirectives: CacheControl { keptRule?.overrides == true ? validity.directives.overridden : validity.directives }
    /// The stored bytes as part of the whole; nil when all are stored (RFC 9111 §3.3).
    package var part: ContentRange? { validity.part }
    package var entityTag: EntityTag? { head.fields.single(.eTag).flatMap { EntityTag($0) } }
}

/// What the lifetimes of a route make of a stored response (docs/caching.md#lifetimes-by-route).
extension CacheControl {
    /// These directives without those that a route overrides: the ones that demand validation.
    var overridden: CacheControl {
        var directives = self
        if directives.noCache == .all { directives.noCache = .absent }
        (directives.mustRevalidate, directives.proxyRevalidate, directives.sMaxAge) = (false, false, nil)
        return directives
    }
}

extension StoredResponse {
    /// Takes the rule of the route that answers for it now. What is shared only because it is validated for each client
    /// (RFC 9111 §3.5) stays so.
    package mutating func adopt(_ rule: LifetimeRule?) {
        var rule = rule
        if owner != nil { rule?.overrides = false }
        if rule != lifetimeRule { lifetimeRule = rule }
    }
}

extension CacheStatus {
    /// The status of a fresh stored response; it says when a route has set the lifetime.
    package static func hit(_ freshness: Freshness) -> CacheStatus {
        CacheStatus(hit: true, ttl: freshness.remaining.seconds, detail: freshness.source == .route ? "route-ttl" : nil)
    }
}

/// States that a write, sent through this proxy after the copy was fetched, has changed what the copy represents (docs/outbox.md#effects).
///
/// While the upstream is reachable such a copy is fetched anew, without its validators where the write was one to its URL. While it is not,
/// the copy is served.
package struct OwnWriteMark: Hashable, Sendable {
    /// The end of the last such write.
    package var at: Tick
    /// True if the copy includes every such write: it is the upstream's answer, or the result computed from the request. False if an effect
    /// is unknown; then the copy is served with `Rockpool-Dirty: 1`.
    package var isIncluded: Bool

    /// Creates the mark of a write that ended at `at`.
    package init(at: Tick, isIncluded: Bool) {
        self.at = at
        self.isIncluded = isIncluded
    }
}

extension StoredResponse {
    /// Own writes that have ended by then are part of the copy: its request, or the last own write that was worked into it.
    package var includesWritesUntil: Tick {
        guard let ownWrite, ownWrite.isIncluded else { return asked }
        return max(asked, ownWrite.at)
    }

    /// True if the copy is a representation that its client may have seen last: not one that an own write has made out of date. The write
    /// of another client only demands that the copy is validated.
    package var isKnownState: Bool { head.status == 200 && part == nil && !isDirty }

    /// True if the copy lacks the effect of an own write.
    package var isDirty: Bool { ownWrite.map { !$0.isIncluded } ?? false }
}

// MARK: - The identity of a body

/// One state of a resource (RFC 9110 §8.8.3, RFC 9111 §3.4; docs/caching.md#ranges): bytes of equal strong tag and total length belong
/// together.
package struct Representation: Hashable, Sendable {
    package let tag: EntityTag
    /// Length of the whole body, in bytes.
    package let length: Int64

    /// Reads the representation that a response holds, whole or in part; nil without a strong tag or a known length.
    /// - Parameter length: The announced length of the body of a 200.
    package init?(of head: ResponseHead, length: Int64?) {
        guard let tag = head.fields.single(.eTag).flatMap({ EntityTag($0) }), tag.isStrong,
            let whole = head.status == 206 ? PartialResponse.part(of: head)?.length : head.status == 200 ? length : nil, whole > 0
        else { return nil }
        self.tag = tag
        self.length = whole
    }

    /// Reads the representation of a stored response.
    package init?(of stored: StoredResponse) { self.init(of: stored.head, length: stored.bodyLength) }
}

extension Range<Int64> {
    /// The bytes of this range that none of `held` contains, in order.
    package func gaps(between held: [Range<Int64>]) -> [Range<Int64>] {
        var (gaps, start) = ([Range<Int64>](), lowerBound)
        for range in held.sorted(by: { $0.lowerBound < $1.lowerBound }) where range.upperBound > start && range.lowerBound < upperBound {
            if range.lowerBound > start { gaps.append(start..<range.lowerBound) }
            start = Swift.max(start, range.upperBound)
        }
        if start < upperBound { gaps.append(start..<upperBound) }
        return gaps
    }
}

extension StoredResponse {
    /// The stored response as the whole that it is a part of, for decisions about its reuse; nil if the length of the whole is unknown.
    package var asWhole: StoredResponse? {
        guard let part else { return self }
        guard let length = part.length else { return nil }
        var whole = self
        whole.head = PartialResponse.holding(0..<length, of: length, fields: head.fields)
        whole.bodyLength = length
        return whole
    }

    /// The bytes that are stored, as positions in the whole.
    package var heldRange: Range<Int64>? { part.map(\.range) ?? 0..<bodyLength }

    /// True if the origin is known to answer requests for ranges.
    package var supportsRanges: Bool {
        part != nil || head.fields[.acceptRanges]?.lowercased().contains("bytes") == true
    }
}

/// The digests of a whole representation, in the algorithms that are verified here (RFC 9530 §2, §3; RFC 1864).
package struct BodyDigests: Hashable, Sendable {
    package enum Algorithm: String, CaseIterable, Sendable {
        case sha256 = "sha-256"
        case sha512 = "sha-512"
        case md5
    }

    package struct Digest: Hashable, Sendable {
        package var algorithm: Algorithm
        package var bytes: [UInt8]

        package init(algorithm: Algorithm, bytes: [UInt8]) {
            self.algorithm = algorithm
            self.bytes = bytes
        }
    }

    /// Fields that hash the content of one message. In a 206 that content is the part, so they do not describe the whole.
    static let contentFields: Set<String> = ["content-digest", "content-md5"]

    /// The digests the bytes must match, all of them. Empty when the origin sends no readable digest.
    package private(set) var all: [Digest] = []

    /// - Parameter fields: Fields of a 200 or of a stored part. A 206's own `contentFields` are not stored (`PartialResponse.normalized`).
    package init(_ fields: HTTPFields) {
        for name in ["repr-digest", "content-digest"] {
            guard let value = fields.value(of: name) else { continue }
            var parser = StructuredFieldValueParser(Array(value.utf8))
            guard let members = try? parser.parseDictionaryFieldValue() else { continue }
            for algorithm in Algorithm.allCases {
                guard case .item(let item)? = members[algorithm.rawValue], case .undecodedByteSequence(let text) = item.rfc9651BareItem,
                    let bytes = Base64.decode(text)
                else { continue }
                all.append(Digest(algorithm: algorithm, bytes: bytes))
            }
        }
        if let bytes = fields.value(of: "content-md5").flatMap({ Base64.decode($0) }), bytes.count == 16 {
            all.append(Digest(algorithm: .md5, bytes: bytes))
        }
    }
}
