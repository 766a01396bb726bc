// Messages of Rockpool's own as they are sent: signed anew each time (docs/outbox.md#messages).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

extension OutboundWrites {
    /// A message waits for this long when its secret cannot be read.
    private static let secretWait = TimeSpan.seconds(30)

    /// Returns the signed request of a message.
    func message(_ operation: QueuedWrite, for kind: ReceiverKind) throws(DispatchBlocked) -> OutboundWrite {
        var head = operation.request
        let body = try bytes(of: operation)
        do {
            guard let file = active.configuration.secretFile(of: operation.request.url, for: kind) else {
                throw UnconfiguredReceiver(url: operation.request.origin.url)
            }
            for field in try WebhookSignature(secretFile: file).fields(id: operation.idempotencyKey, at: now(), body: body) {
                head.fields[field.name] = field.value
            }
            return OutboundWrite(head: head, body: .bytes(ByteBuffer(bytes: body)), resource: nil, needsFreshConnection: false)
        } catch {
            throw DispatchBlocked(
                disposition: Disposition(
                    state: .pending, nextAttemptAt: now() + Self.secretWait, countsAsAnswered: false, detail: "\(error)"))
        }
    }
}

/// Thrown for a message to a receiver that the configuration names no longer.
private struct UnconfiguredReceiver: Error, CustomStringConvertible {
    var url: String
    var description: String { "the configuration names no secret for \(url)" }
}

extension Configuration {
    /// Returns the file of the secret with which a message to `url` is signed.
    fileprivate func secretFile(of url: String, for kind: ReceiverKind) -> String? {
        switch kind {
        case .callback: callbacks.secretFile
        case .report: fleet.report?.secretFile
        case .webhook: notify.compactMap(\.webhook).first { (try? RequestHead(url: $0.url).url) == url }?.secretFile
        }
    }
}
