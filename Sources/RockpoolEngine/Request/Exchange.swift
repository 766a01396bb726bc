// A request as the engine receives it, and the reply to it (docs/architecture.md#vocabulary, docs/architecture.md#journeys).
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
