// A repeated request whose responses are never stored, with all that is needed to pass it on (docs/architecture.md#relays).
import HTTPTypes
package import NIOCore
package import RockpoolCore
import Synchronization

/// One request, by all bytes of its head, with the request that the read pipeline has sent for it.
package final class RelayRule: Sendable {
    /// The request as the pipeline sent it.
    package let request: OutboundRequest
    /// The head of `request` in the form of HTTP/1.1.
    package let bytes: ByteBuffer
    /// What the client sent, and where.
    let head: ByteBuffer
    let listener: String
    let isLocalClient: Bool
    let plan: RoutePlan
    /// The record of the exchange that this rule was made from.
    let trace: Trace
    private let learned: Mutex<(template: RelayTemplate?, validity: Validity)>

    /// The state of everything that the pipeline's decision stands on.
    struct Validity {
        var until: Timestamp
        /// The state of the upstreams (`ReachabilityTable.epoch`).
        var epoch: UInt64
        /// Removals in the cache (`CacheStore.hotMoment`), before anything was read.
        var moment: UInt64
        /// The places of the keys that the request is looked up by.
        var slots: [Int]
    }

    init(_ passed: PassedRead, head: ByteBuffer, listener: String, isLocalClient: Bool, trace: Trace, validity: Validity) {
        (request, plan, self.trace) = (passed.request, passed.plan, trace)
        (self.head, self.listener, self.isLocalClient) = (head, listener, isLocalClient)
        bytes = Self.serialised(passed.request.head)
        learned = Mutex((nil, validity))
    }

    /// The pattern of the responses; nil before the first one has been learned.
    package var template: RelayTemplate? { learned.withLock(\.template) }

    var validity: Validity { learned.withLock(\.validity) }

    /// Takes the pattern of a response that the pipeline has just passed on.
    func learn(_ template: RelayTemplate?, validity: Validity) { learned.withLock { $0 = (template, validity) } }

    /// True for the same request.
    func isFor(_ given: Span<UInt8>, at listener: String, isLocalClient: Bool) -> Bool {
        guard listener == self.listener, isLocalClient == self.isLocalClient else { return false }
        let kept = head
        let own = kept.readableBytesUInt8Span
        guard own.count == given.count else { return false }
        for index in own.indices where own[index] != given[index] { return false }
        return true
    }

    private static func serialised(_ head: RequestHead) -> ByteBuffer {
        var bytes = ByteBuffer(string: "\(head.method.rawValue) \(head.target) HTTP/1.1\r\n")
        bytes.writeString("Host: \(head.fields[.hostField] ?? head.origin.authority)\r\n")
        for field in head.fields where field.name != .hostField {
            bytes.writeString("\(field.name.rawName): ")
            bytes.writeBytes(field.valueBytes)
            bytes.writeStaticString("\r\n")
        }
        bytes.writeStaticString("\r\n")
        return bytes
    }
}
