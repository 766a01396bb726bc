// One request as it reaches the engine, and the reply that goes back (docs/architecture.md#vocabulary, docs/architecture.md#journeys).
package import NIOCore
package import RockpoolCore
import RockpoolStore

/// One request and the means to answer it. The connection has already refused what RFC 9112 forbids.
package struct Exchange: Sendable {
    /// End-to-end fields only; the target resolved to an origin.
    package var request: RequestHead
    /// Nil when the request has no body.
    package var body: BodyPipe?
    /// As the client declared it; nil for chunked.
    package var bodyLength: Int64?
    /// Authority the client used for this server: where a relative `Location` will lead it.
    package var client: String
    /// Whether it comes from this machine: others may not reach services that only listen on loopback.
    package var isLocalClient: Bool
    /// Passes an interim (1xx) response on to the client.
    package var interim: @Sendable (ResponseHead) -> Void

    package init(
        request: RequestHead, body: BodyPipe? = nil, bodyLength: Int64? = nil, client: String = "", isLocalClient: Bool = true,
        interim: @escaping @Sendable (ResponseHead) -> Void = { _ in }
    ) {
        self.request = request
        self.body = body
        self.bodyLength = bodyLength
        self.client = client
        self.isLocalClient = isLocalClient
        self.interim = interim
    }
}

/// What the client is told.
package struct Reply: Sendable {
    package var head: ResponseHead
    package var body: ReplyBody
    package var trace: Trace
    /// Called once by whoever sends the reply, when it is over.
    package var ended: @Sendable (ReplyEnd) -> Void = { _ in }

    package init(head: ResponseHead, body: ReplyBody, trace: Trace) {
        self.head = head
        self.body = body
        self.trace = trace
    }
}

/// How the sending of a reply ended.
package struct ReplyEnd: Hashable, Sendable {
    /// Bytes of the body that the client's connection took; of a stored file, to within a mebibyte where it broke off.
    package var bytes: Int64
    /// What broke the reply off: a failure of the upstream by RFC 9209's name, or `clientLeft`. Nil when all of it was sent.
    package var error: String?

    package static let clientLeft = "client_left"

    package init(bytes: Int64, error: String? = nil) {
        self.bytes = bytes
        self.error = error
    }
}

/// A reply's body, in the form that is cheapest to send.
package enum ReplyBody: Sendable {
    /// No body follows; `length` is what a GET would have had (HEAD), when known.
    case none(length: Int64?)
    case bytes(ByteBuffer)
    /// `length` bytes of the file from `offset` on. `lease` keeps it from being unlinked until it has been opened.
    case file(path: String, offset: Int64, length: Int64, lease: any Sendable)
    /// `length` nil: chunked, or until the connection closes.
    case stream(any BodySource, length: Int64?)

    init(_ body: CachedBody, in cache: CacheStore) {
        switch body {
        case .bytes(let bytes): self = .bytes(bytes)
        case .file(let path, let offset, let length, let lease): self = .file(path: path, offset: offset, length: length, lease: lease)
        case .sealed: self = .stream(StoredBodySource(body, in: cache), length: body.length)
        }
    }
}
