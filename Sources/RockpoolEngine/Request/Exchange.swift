// A request as the engine receives it, and the reply to it (docs/architecture.md#vocabulary, docs/architecture.md#journeys).
package import HTTPTypes
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
    /// Fields about the client that are sent with the request, and are no part of it for the cache and the outbox.
    package var forwarded: HTTPFields = [:]
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

extension Exchange {
    /// The head with the fields about the client.
    func forwarding(_ head: RequestHead) -> RequestHead {
        guard !forwarded.isEmpty else { return head }
        var head = head
        for field in forwarded { head.fields.append(field) }
        return head
    }
}
