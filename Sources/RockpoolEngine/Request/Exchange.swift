// A request as the engine receives it, and the reply to it (docs/architecture.md#vocabulary, docs/architecture.md#journeys).
package import NIOCore
package import RockpoolCore
import RockpoolStore

/// One request and the means to answer it. The connection has already refused messages that RFC 9112 forbids.
package struct Exchange: Sendable {
    /// End-to-end fields only; the target is resolved to an origin.
    package var request: RequestHead
    /// Nil if the request has no body.
    package var body: BodyPipe?
    /// The declared length; nil for a chunked body.
    package var bodyLength: Int64?
    /// The authority that the client used for this server; relative `Location` fields resolve against it.
    package var client: String
    /// True for a client on this machine. Other clients may not reach services that listen on loopback only.
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

/// The response to the client.
package struct Reply: Sendable {
    package var head: ResponseHead
    package var body: ReplyBody
    package var trace: Trace
    /// Called once by the sender of the reply, when it has ended.
    package var ended: @Sendable (ReplyEnd) -> Void = { _ in }

    package init(head: ResponseHead, body: ReplyBody, trace: Trace) {
        self.head = head
        self.body = body
        self.trace = trace
    }
}

/// The end of sending a reply.
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

/// A reply's body, in the form that is cheapest to send.
package enum ReplyBody: Sendable {
    /// No body follows; `length` is the length for a GET (in a response to HEAD), if known.
    case none(length: Int64?)
    case bytes(ByteBuffer)
    /// `length` bytes of the file, from `offset`. `lease` keeps the file from being unlinked until it is open.
    case file(path: String, offset: Int64, length: Int64, lease: any Sendable)
    /// A `length` of nil means chunked, or until the connection closes.
    case stream(any BodySource, length: Int64?)

    init(_ body: CachedBody, in cache: CacheStore) {
        switch body {
        case .bytes(let bytes): self = .bytes(bytes)
        case .file(let path, let offset, let length, let lease): self = .file(path: path, offset: offset, length: length, lease: lease)
        case .sealed: self = .stream(StoredBodySource(body, in: cache), length: body.length)
        }
    }
}
