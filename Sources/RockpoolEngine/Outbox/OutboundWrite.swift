// An operation in the form in which it is sent.
import RockpoolCore

/// A request that is ready to be sent.
struct OutboundWrite: Sendable {
    var head: RequestHead
    var body: OutboundRequest.Body
    var resource: Resource?
    var needsFreshConnection: Bool
}
