// What a relay sends, and how it recognises a usual response (docs/architecture.md#relays).
import HTTPTypes
package import NIOCore
package import RockpoolCore

/// One request that takes the place of its exchange in the read pipeline.
package struct Relay: Sendable {
    package let basis: RelayBasis
    /// When it was made, at the latest when it is sent.
    let madeAt: Timestamp
    /// The request in the form of HTTP/1.1.
    package let bytes: ByteBuffer
    /// The patterns of the responses; none before the first one has been learned.
    package let templates: [RelayTemplate]
    /// The read, if its response is stored; nil for a response that is passed on and never stored.
    package let first: FirstRead?
    /// The write; nil for a read.
    package var write: RelayedWrite?
}

/// What the relays of a rule have in common.
package final class RelayBasis: Sendable {
    /// The request as the pipeline would send it, without a write's own key and body.
    package let request: OutboundRequest
    let plan: RoutePlan
    /// The record of an exchange in which the pipeline took the same steps.
    let trace: Trace

    init(_ request: OutboundRequest, plan: RoutePlan, trace: Trace) { (self.request, self.plan, self.trace) = (request, plan, trace) }
}

extension EarlyAnswer {
    /// - Parameters:
    ///   - head: as it was received; empty for a failure.
    ///   - result: nil if the pipeline is to send the request: it was not sent, or it was lost and may be repeated.
    ///   - lost: the failure of a write that was sent and may be repeated.
    package convenience init(
        to relay: Relay, head: [UInt8] = [], result: Result<OriginReply, TransferFailure>?, lost: TransferFailure? = nil
    ) {
        self.init(
            to: relay.basis.request.head, head: head, subject: relay.write ?? relay.first, isWrite: relay.write != nil, result: result,
            lost: lost, sentAt: relay.madeAt)
    }
}

extension RequestHead {
    /// The head in the form of HTTP/1.1, without the blank line.
    var lines: ByteBuffer {
        var bytes = ByteBuffer(string: "\(method.rawValue) \(target)")
        bytes.writeImmutableBuffer(fieldLines)
        return bytes
    }

    /// The lines of the head from the version on, with the blank line.
    var linesAfterTarget: ByteBuffer {
        var bytes = fieldLines
        bytes.writeStaticString("\r\n")
        return bytes
    }

    private var fieldLines: ByteBuffer {
        var bytes = ByteBuffer(string: " HTTP/1.1\r\nHost: \(fields[.hostField] ?? origin.authority)\r\n")
        for field in fields where field.name != .hostField {
            bytes.writeString("\(field.name.rawName): ")
            bytes.writeBytes(field.valueBytes)
            bytes.writeStaticString("\r\n")
        }
        return bytes
    }

    /// The line of a `GET` for `target`, and the lines after it.
    static func bytes(_ target: String, _ linesAfterTarget: ByteBuffer) -> ByteBuffer {
        var bytes = ByteBuffer()
        bytes.reserveCapacity(4 + target.utf8.count + linesAfterTarget.readableBytes)
        bytes.writeStaticString("GET ")
        bytes.writeString(target)
        bytes.writeImmutableBuffer(linesAfterTarget)
        return bytes
    }
}
