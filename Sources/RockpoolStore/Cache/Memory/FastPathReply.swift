// A stored response with the request bytes that it answers (docs/architecture.md#parts *memory tier*).
import Crypto
package import HTTPTypes
package import NIOCore
package import RockpoolCore
package import Synchronization

/// A reply that can be sent again while its entry is unchanged. Stored in the memory tier's item of that entry.
package final class FastPathReply: Sendable {
    private struct Selecting: Equatable {
        let name: [UInt8]
        let value: [UInt8]?
    }

    /// The form in which the request receives the stored response.
    package enum Form: Hashable, Sendable {
        case whole
        /// 304, because the request's condition names the stored validator.
        case notModified
        /// One range, by the request's `Range`.
        case part([UInt8])
    }

    package let entry: CacheEntry
    package let body: ByteBuffer
    /// Counts the bodies that are sent from here; nil where they are not counted.
    package let served: ServedBytes?
    /// The category of the route.
    package let category: String?
    /// True if the tags of the stored head are not sent.
    package let hidesTags: Bool
    /// What the decision to send the response stands on; it is taken again whenever the message is serialised.
    package let basis: ReuseBasis
    private let listener: String
    private let target: [UInt8]
    private let host: [UInt8]
    private let selecting: [Selecting]
    private let eTag: [UInt8]
    private let lastModified: [UInt8]
    /// When a request was last left to the full path, in milliseconds.
    private let handedOverAt = Atomic<Int64>(.min)

    /// - Parameters:
    ///   - arrival: a request that `entry` answers as stored. A request that differs from it by a single byte in the target, in Host, or in
    ///     one of `names` takes the full path; so does one with a credential of which that is not known (`HotReader`).
    ///   - names: the field names in the `Vary` of every response considered for `arrival`, so that this reply never answers a request for
    ///     which another response would be selected; and the field that identifies principals at this upstream.
    package init(
        _ entry: CacheEntry, body: ByteBuffer, basis: ReuseBasis, for arrival: PlainArrival, selecting names: [HTTPField.Name],
        served: ServedBytes? = nil, category: String? = nil, hidesTags: Bool = false
    ) {
        (self.served, self.category, self.hidesTags) = (served, category, hidesTags)
        self.entry = entry
        self.body = body
        self.basis = basis
        listener = arrival.listener
        target = arrival[arrival.request.target]
        host = arrival[arrival.request.host]
        selecting = names.map { name in
            let name = Array(name.canonicalName.utf8)
            return Selecting(name: name, value: arrival.value(of: name))
        }
        let bytes = { (name: HTTPField.Name) in Array((entry.response.head.fields[name] ?? "").utf8) }
        (eTag, lastModified) = (bytes(.eTag), bytes(.lastModified))
    }

    /// True if the request has the bytes that this reply was made for, but for its credential.
    package func answers(_ arrival: PlainArrival) -> Bool {
        arrival.holds(target, at: arrival.request.target) && arrival.holds(host, at: arrival.request.host) && arrival.listener == listener
            && selecting.allSatisfy { arrival.holds($0.value, asValueOf: $0.name) }
    }

    /// Returns the form for a request that this reply answers; nil if its condition must be evaluated on the full path. A condition with
    /// exactly the stored validator is known to be false (RFC 9110 §13.1.2, §13.1.3).
    package func form(for arrival: PlainArrival) -> Form? {
        let request = arrival.request
        if !request.ifNoneMatch.isEmpty { return arrival.holds(eTag, at: request.ifNoneMatch) ? .notModified : nil }
        if !request.ifModifiedSince.isEmpty { return arrival.holds(lastModified, at: request.ifModifiedSince) ? .notModified : nil }
        if request.range.isEmpty { return .whole }
        return request.isHead ? nil : .part(arrival[request.range])
    }

    /// True once a second: then the full path takes the request, and refreshes the response.
    package func handOver(at now: Timestamp) -> Bool {
        let last = handedOverAt.load(ordering: .relaxed)
        guard now.milliseconds < last || now.milliseconds - 1000 >= last else { return false }
        return handedOverAt.compareExchange(expected: last, desired: now.milliseconds, ordering: .relaxed).exchanged
    }

    /// True if `other` answers the same requests of one client.
    func isSuperseded(by other: FastPathReply) -> Bool {
        target == other.target && host == other.host && listener == other.listener && selecting == other.selecting
    }

    /// True if `other` is the same reply, made for another credential: a shared copy, chosen from the same ones by the same rules.
    func isSame(as other: FastPathReply) -> Bool {
        isSuperseded(by: other) && entry.id == other.entry.id && entry.key == other.entry.key && entry.key.partition == .shared
            && basis.candidates.map(\.id) == other.basis.candidates.map(\.id) && basis.rules == other.basis.rules
            && basis.upstream == other.basis.upstream && hidesTags == other.hidesTags && category == other.category
    }

    /// Bytes in memory, without the entry and its body.
    var memoryCost: Int64 {
        Int64(target.count + host.count + .kib(3) + (body.readableBytes <= HotMessage.joinLimit ? body.readableBytes : 0))
    }
}

/// The inputs of the decision about one request that stay the same between two of its repetitions.
package struct ReuseBasis: Sendable {
    /// Every stored response that the request may read.
    package let candidates: [CacheEntry]
    /// The request without its credential, condition and range.
    package let request: RequestHead
    package let rules: ReuseContext
    /// The declared upstream; nil without one.
    package let upstream: String?

    package init(candidates: [CacheEntry], request: RequestHead, rules: ReuseContext, upstream: String?) {
        (self.candidates, self.request, self.rules, self.upstream) = (candidates, request, rules, upstream)
    }
}

/// The requests with one credential, or without one, that were found to get a kept reply.
package final class HotReader: Sendable {
    /// The hash of its requests.
    let hash: Int
    private let credential: CredentialDigest?
    /// The name of its principal; nil without a credential.
    package let principal: String?
    /// What it is shown of a place that it may change; nil for any other reply.
    package let shown: Showing?
    /// The fields of its first request, without secrets, as records show them.
    package let request: HTTPFields
    /// Bytes in memory.
    let memoryCost: Int64

    package init(_ arrival: PlainArrival, principal: String? = nil, shown: Showing? = nil, request: HTTPFields = [:]) {
        (hash, credential) = (arrival.hash, arrival.credential)
        (self.principal, self.shown, self.request) = (principal, shown, request)
        memoryCost = Int64(512 + request.size + (shown?.state.content?.count ?? 0))
    }

    /// True if the request has its credential, by the exact bytes.
    package func isFor(_ arrival: PlainArrival) -> Bool { credential == arrival.credential }
}

/// The keyed digest of all fields of a request that may identify its principal, by their exact bytes. The key belongs to this process, so
/// that a digest says nothing about the credential elsewhere.
package struct CredentialDigest: Hashable, Sendable {
    private let words: SIMD4<UInt64>

    /// - Parameter lines: The lines of the fields, from the name to the end of the value.
    package init(of lines: [UInt8]) {
        var code = Self.keyed
        code.update(data: lines)
        words = unsafe code.finalize().withUnsafeBytes { unsafe $0.loadUnaligned(as: SIMD4<UInt64>.self) }
    }

    /// A code of no bytes: to take up the key costs as much as the lines.
    private static let keyed = HMAC<SHA256>(key: SymmetricKey(size: .bits256))
}

/// One message of a hot reply as records show it, made when the message is serialised (docs/reference/admin-api.md#requests).
package final class HotNote: Sendable {
    package let url: String
    package let upstream: String?
    package let category: String?
    package let cacheStatus: CacheStatus
    package let isStale: Bool
    package let error: String?
    package let status: Int
    package let response: HTTPFields
    /// Estimated size in bytes.
    package let size: Int
    /// Counts the bodies that are sent; nil where they are not counted.
    let served: ServedBytes?

    /// - Parameters:
    ///   - reply: the reply that the message is a form of.
    ///   - head: the message's head.
    ///   - error: the name of the error for which a stale response is sent, by RFC 9209.
    package init(_ reply: FastPathReply, head: ResponseHead, cacheStatus: CacheStatus, isStale: Bool, error: String?) {
        (url, category) = (reply.basis.request.url, reply.category)
        (upstream, served) = (reply.basis.upstream, reply.served)
        (self.cacheStatus, self.isStale, self.error) = (cacheStatus, isStale, error)
        status = head.status
        response = SecretFields.removed(from: head.fields)
        size = url.utf8.count + response.size
    }
}

extension HTTPFields {
    /// Bytes of names and values, estimated.
    package var size: Int { reduce(0) { $0 + $1.name.rawName.utf8.count + $1.value.utf8.count + 32 } }
}

/// What a hot reply shows of a place that its client may change (docs/outbox.md#sight): a state, and the identity that is shown it.
package final class Showing: Sendable {
    /// `Viewer.partition`.
    package let partition: String?
    package let state: ShownState
    /// The change of the sight after which it was noted last, and for which program, as one number.
    package let notedAs = Atomic<UInt64>(.max)

    package init(_ state: ShownState, to partition: String?) { (self.partition, self.state) = (partition, state) }
}
