// The response to a client, and what it reports when it has been sent (docs/architecture.md#journeys).
import HTTPTypes
package import NIOCore
package import RockpoolCore
import RockpoolStore

/// The response to the client.
package struct Reply: Sendable {
    package var head: ResponseHead
    package var body: ReplyBody
    package var trace: Trace
    /// True to close the connection (or reset the stream) in place of sending anything (`on_miss: close`).
    package var isWithheld = false
    /// The read that this is the answer to, if it was passed on.
    var passed: PassedRead?
    /// The write that this is the answer to, if it was sent while its client waited.
    var passedWrite: PassedWrite?
    /// Called once by the sender of the reply, when it has ended.
    package var ended: @Sendable (ReplyEnd) -> Void = { _ in }

    package init(head: ResponseHead, body: ReplyBody, trace: Trace) {
        self.head = head
        self.body = body
        self.trace = trace
    }
}

/// A read that was passed on to its upstream, because nothing was stored under its keys, or what was had to be validated.
struct PassedRead: Sendable {
    /// As it was sent, but for the conditions that validate.
    private(set) var request: OutboundRequest
    /// As the client has sent it.
    let received: RequestHead
    let plan: RoutePlan
    let identity: Identity
    /// What became of the answer, as it will of the next one; nil if it has validated what is stored.
    let use: RelayTemplate.Use?

    /// Nil for a read that is not its client's request as it came.
    /// - Parameter request: as it was sent; nil if that is not known.
    init?(_ request: OutboundRequest?, in context: RequestContext, to use: RelayTemplate.Use?) {
        guard let request, !context.isBehind, !context.namesUnmapped, context.bodyDigest == nil else { return nil }
        (self.request, received, plan, identity) = (request, context.request, context.plan, context.identity)
        self.use = use
        if use == nil { self.request.head = request.head.unvalidated }
    }

    /// The names of fields by which the configuration tells identities apart, where they are no part of what a credential is known by.
    var configured: [[UInt8]] {
        plan.upstream?.identity.fieldName.flatMap { $0.plainKind == .credential ? nil : [Array($0.canonicalName.utf8)] } ?? []
    }
}

/// A live write that was answered in the usual way: nothing about it but the write itself decided how it was treated.
struct PassedWrite: Sendable {
    /// As it was sent.
    let request: OutboundRequest
    /// The request as the pipeline works with it.
    let received: RequestHead
    let plan: RoutePlan
    let identity: Identity
    let upstream: Upstream
    /// The operation that it would have become.
    let operation: QueuedWriteDraft
    /// Its head, before fields are added for its upstream.
    let head: RequestHead

    /// The head as it was sent, without a key that was made for it.
    var unkeyed: RequestHead { unkeyed(request.head) }

    /// Such a head without a key that was made for it, and the length.
    func unkeyed(_ sent: RequestHead) -> RequestHead {
        var head = sent
        head.fields[values: .contentLength] = []
        if !operation.keyIsClients { head.fields[values: upstream.idempotency.name] = [] }
        return head
    }
}

// MARK: - The body

/// A reply's body, in the form that is cheapest to send.
package enum ReplyBody: Sendable {
    /// No body follows; `length` is the length for a GET (in a response to HEAD), if known.
    case none(length: Int64?)
    case bytes(ByteBuffer)
    /// `length` bytes of the file, from `offset`. `lease` keeps the file from being unlinked until it is open.
    case file(path: String, offset: Int64, length: Int64, lease: any Sendable)
    /// A `length` of nil means chunked, or until the connection closes.
    case stream(any BodySource, length: Int64?)

    /// True if the body is in memory, or there is none.
    package var isAtHand: Bool {
        switch self {
        case .none, .bytes: true
        case .file, .stream: false
        }
    }

    init(_ body: CachedBody, in cache: CacheStore) {
        switch body {
        case .bytes(let bytes): self = .bytes(bytes)
        case .file(let path, let offset, let length, let lease): self = .file(path: path, offset: offset, length: length, lease: lease)
        case .sealed: self = .stream(StoredBodySource(body, in: cache), length: body.length)
        }
    }
}

extension ReplyBody {
    /// Reads the body into memory; the reply keeps it in that form. Nil if there is none, if it has more than `limit` bytes, or if it breaks
    /// off; then it is sent as it would have been.
    mutating func collect(upTo limit: Int, from cache: CacheStore) async -> ByteBuffer? {
        switch self {
        case .none: return nil
        case .bytes(let bytes): return bytes.readableBytes <= limit ? bytes : nil
        case .file(let path, let offset, let length, let lease):
            guard length <= limit, let lease = lease as? BodyLease,
                let bytes = try? await cache.read(0..<length, of: .file(path: path, offset: offset, length: length, lease: lease))
            else { return nil }
            self = .bytes(bytes)
            return bytes
        case .stream(let source, let length):
            guard length ?? 0 <= limit else { return nil }
            let (bytes, rest) = await source.beginning(upTo: limit)
            self = rest.map { .stream(BodyPipe(bytes, then: $0), length: length) } ?? .bytes(bytes)
            return rest == nil ? bytes : nil
        }
    }
}

extension BodySource {
    /// Reads until the end or past `limit` bytes. `rest` yields what follows, or the failure that interrupted the body; nil at the end.
    func beginning(upTo limit: Int) async -> (bytes: ByteBuffer, rest: (any BodySource)?) {
        var bytes = ByteBuffer()
        do throws(TransferFailure) {
            while var chunk = try await next() {
                bytes.writeBuffer(&chunk)
                if bytes.readableBytes > limit { return (bytes, self) }
            }
            return (bytes, nil)
        } catch {
            return (bytes, BodyPipe(broken: error))
        }
    }
}

// MARK: - The end

/// How the sending of a reply ended, for the access log.
package struct ReplyEnd: Hashable, Sendable {
    /// Number of body bytes that the client's connection accepted. If a stored file broke off, accurate to one mebibyte.
    package var bytes: Int64
    /// The cause of an incomplete reply: the RFC 9209 name of an upstream failure, or `clientLeft`. Nil if everything was sent.
    package var error: String?

    package static let clientLeft = "client_left"

    package init(bytes: Int64, error: String? = nil) {
        self.bytes = bytes
        self.error = error
    }
}

// MARK: - The last fields

/// Completes replies as the last step before they are sent: with the fields that every reply carries, whatever produced it.
struct FinalFields: Sendable {
    /// Rockpool's name in `Via`.
    let viaName: String
    let now: @Sendable () -> Timestamp

    /// - Parameters:
    ///   - gateway: to which references to the origin lead; nil where they lead there already.
    ///   - hidesTags: true if the tags of cached responses are for caches only.
    func add(to reply: inout Reply, trace: Trace, gateway: GatewayAddress? = nil, hidesTags: Bool = false) {
        reply.trace = trace
        if let gateway { reply.head.fields = gateway.translated(reply.head.fields) }
        if hidesTags { CacheTags.remove(from: &reply.head.fields) }
        Via.appended(to: &reply.head.fields, version: "1.1", name: viaName)
        let status = trace.cacheStatus ?? CacheStatus(hit: false, detail: "generated")
        reply.head.fields.append(HTTPField(name: .cacheStatus, value: status.fieldValue))
        if let status = trace.proxyStatus { reply.head.fields.append(HTTPField(name: .proxyStatus, value: status.fieldValue)) }
        if !reply.head.fields.contains(.date) { reply.head.fields[.date] = HTTPDate.format(now()) }
    }
}
