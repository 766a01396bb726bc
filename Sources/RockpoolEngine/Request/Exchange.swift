// A request as the engine receives it, and the reply to it (docs/architecture.md#vocabulary, docs/architecture.md#journeys).
package import HTTPTypes
import NIOCore
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
    /// The gateway's address as the client uses it; nil for other listeners.
    package var gateway: GatewayAddress?
    /// True for a client on this machine. Other clients may not reach services that listen on loopback only.
    package var isLocalClient: Bool
    /// The client, as the limits tell clients apart; nil where nothing is shared.
    package var account: ClientAccount?
    /// The bytes of its body that are kept until its end.
    var held: HeldBytes
    /// The IP address of the client; empty where it is not known.
    package var clientAddress = ""
    /// True if another gateway of the site asks: it gets the server's state, and no further gateway is asked.
    var isFromGateway = false
    /// Fields about the client that are sent with the request, and are no part of it for the cache and the outbox.
    package var forwarded: HTTPFields = [:]
    /// The key that signs the request anew, because its own signature was made with that key.
    package var signer: SigV4Signer?
    /// The request's bytes, if it is a plain one.
    package var plain: PlainCopy?
    /// The head's bytes, if it is a plain write.
    package var plainWrite: PlainWriteCopy?
    /// The response to the same request, if a relay has it.
    package var early: EarlyAnswer?
    /// True if the request was lost on a kept connection: the next attempt uses a new one.
    package var needsFreshConnection = false
    /// Runs the request's tasks; nil for the shared threads.
    package var executor: (any TaskExecutor)?
    /// The event loop of the client's connection.
    package var loop: (any TaskExecutor)?
    /// Passes an interim (1xx) response on to the client.
    package var interim: @Sendable (ResponseHead) -> Void

    package init(
        request: RequestHead, body: BodyPipe? = nil, bodyLength: Int64? = nil, client: String = "", isLocalClient: Bool = true,
        account: ClientAccount? = nil, interim: @escaping @Sendable (ResponseHead) -> Void = { _ in }
    ) {
        self.account = account
        held = body == nil ? .none : HeldBytes(of: account?.memory ?? .own)
        self.request = request
        self.body = body
        self.bodyLength = bodyLength
        self.client = client
        self.isLocalClient = isLocalClient
        self.interim = interim
    }
}

extension Exchange {
    /// Reads the body into the memory that its client may have.
    /// - Returns: the body; nil if it has more than `limit` bytes, and where there is none.
    /// - Throws: the failure that interrupted it; `noRoom` where the client has more in memory than it may.
    func collected(upTo limit: Int) async throws(TransferFailure) -> ByteBuffer? {
        guard let body else { return nil }
        var bytes = ByteBuffer()
        while var chunk = try await body.next() {
            guard held.take(chunk.readableBytes) else {
                body.abandon()
                throw .noRoom
            }
            bytes.writeBuffer(&chunk)
            if bytes.readableBytes > limit {
                body.putBack(bytes)
                held.release()
                return nil
            }
        }
        return bytes
    }

    /// The refusal of a request whose body could not be read whole.
    static func problem(after failure: TransferFailure) -> Problem {
        failure == .noRoom ? Problem(Refusal.busy) : Problem(.badRequest, detail: "the body broke off: \(failure.detail)")
    }

    /// Takes the mark of another gateway off the request, so that no origin gets it.
    mutating func takeGatewayMark() {
        guard request.fields.contains(.rockpoolPeer) else { return }
        request.fields[values: .rockpoolPeer] = []
        isFromGateway = true
    }

    /// Verifies the signature of a request whose upstream has a key of its own (docs/reference/configuration.md#upstreams, `sign`), and takes
    /// the key where it gives a right to it.
    /// - Returns: The reason why a request that claims this key does not get it; else nil.
    mutating func verify(for upstream: Upstream?, at moment: Timestamp) -> SigV4Signer.Doubt? {
        guard let rule = upstream?.sign?.sigV4, let signed = SignedRequest(request), signed.scheme == .sigV4, signed.keyID == rule.keyID
        else { return nil }
        guard let key = try? SigV4Signer(rule) else { return .wrong }
        let names = [
            gateway.map { String($0.authority) }, request.fields[.hostField], request.origin.authority, request.origin.hostAndPort,
        ]
        // The SDKs for Go sign the length.
        var received = request
        if let bodyLength { received.fields[.contentLength] = String(bodyLength) }
        if let doubt = key.doubt(of: received, authorities: names.compactMap(\.self), at: moment) { return doubt }
        signer = key
        return nil
    }

    /// The head with a signature of this moment, where the exchange has a key.
    func signing(_ head: RequestHead, at moment: Timestamp) -> RequestHead {
        guard let signer, SigV4Signer.coversBody(head.fields) else { return head }
        return signer.signed(head, authority: head.fields[.hostField] ?? head.origin.authority, at: moment)
    }

    /// The head with the fields about the client.
    func forwarding(_ head: RequestHead) -> RequestHead {
        guard !forwarded.isEmpty else { return head }
        var head = head
        for field in forwarded { head.fields.append(field) }
        return head
    }
}

/// Takes the marks of waiting entries off what clients send back (docs/reference/configuration.md#resources, `mark`).
extension Exchange {
    /// The size in bytes up to which a body is searched.
    private static let markLimit = Int.mib(8)

    /// Removes from a body of JSON the member that only lists of this proxy have. A body stays as it is where it is coded, and where a digest or a
    /// signature is over it.
    /// - Throws: the failure that interrupted the body.
    mutating func removeMarks(of resource: Resource?) async throws(TransferFailure) {
        guard let resource, resource.mark != nil, MediaType.isJSON(request.fields), !request.fields.contains(.contentEncoding),
            GatewayAddress.mayReplaceLinks(of: request.fields), SignedRequest(request)?.isOfOneRequest != true,
            var bytes = try await collected(upTo: Self.markLimit)
        else { return }
        held.release()
        if let value = try? JSONValue.parse(Array(bytes.readableBytesView)), let plain = resource.unmarked(value) {
            bytes = ByteBuffer(bytes: plain.serialized())
        }
        take(bytes)
    }

    /// Takes these bytes as the whole body.
    mutating func take(_ bytes: ByteBuffer) { (body, bodyLength) = (BodyPipe(whole: bytes), Int64(bytes.readableBytes)) }
}

extension TransferFailure {
    /// The client has more in memory than it may.
    static let noRoom = TransferFailure(kind: .cancelled, sent: .no, detail: "no room for the body in memory")
}
