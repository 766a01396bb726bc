// Puts Rockpool's own messages into the outbox (docs/outbox.md#messages).
import HTTPTypes
import RockpoolCore
import RockpoolStore

/// Queues messages for receivers.
struct OwnMessages: Sendable {
    /// Waiting notices to one origin; further ones are dropped with a line of the log.
    static let webhookLimit = 1000
    /// Maximum size of a callback's body; a longer one leaves out the upstream's answer.
    private static let bodyLimit = Int.kib(64)

    let data: DataStore
    let notifier: OutboxNotifier
    let now: @Sendable () -> Timestamp

    /// Queues a notice for a webhook. Returns the operation.
    /// - Throws: `DataStoreError`, `TooManyWaiting`.
    func queue(_ notice: Notice, to webhook: WebhookSettings) async throws -> QueuedWrite {
        let head = try RequestHead(url: webhook.url)
        let name = ReceiverKind.webhook.upstreamName(of: head.origin)
        guard try await data.openCount(upstream: name) < Self.webhookLimit else { throw TooManyWaiting(origin: head.origin.url) }
        return try await queue(notice.json(at: now()), key: UUIDv7.make(at: now()), to: head, as: .webhook)
    }

    /// Queues the callback about an ended operation. Nil if it is queued already.
    /// - Throws: `DataStoreError`; nothing is queued then.
    func queueCallback(about operation: QueuedWrite, to url: String) async throws -> QueuedWrite? {
        let head = try RequestHead(url: url)
        var document = OperationDocument.json(of: operation)
        if document.serialized().count > Self.bodyLimit { document["result"]?["body"] = .null }
        let message: JSONValue = [
            "type": .string("rockpool.operation.\(operation.state.rawValue)"),
            "timestamp": .string(RFC3339.format(operation.endedAt ?? now())),
            "data": document,
        ]
        do {
            return try await queue(message, key: "\(operation.id)-\(operation.state.rawValue)", to: head, as: .callback)
        } catch DataStoreError.duplicateKey {
            return nil
        }
    }

    /// Queues the report of this site. One that still waits is deleted: an outbox that cannot send holds one report.
    /// - Throws: `DataStoreError`.
    func queue(report: JSONValue, by settings: SiteReportSettings) async throws {
        let message: JSONValue = ["type": "rockpool.report", "timestamp": .string(RFC3339.format(now())), "data": report]
        let operation = try await queue(
            message, key: UUIDv7.make(at: now()), to: try RequestHead(url: settings.url), as: .report, lane: "report:\(settings.site)")
        for earlier in try await data.deleteEarlier(than: operation) { notifier.forget(earlier) }
    }

    /// - Parameter lane: nil for a lane of its own: then no message waits for another.
    private func queue(
        _ message: JSONValue, key: String, to receiver: RequestHead, as kind: ReceiverKind, lane: String? = nil
    ) async throws -> QueuedWrite {
        var head = receiver
        head.method = .post
        head.fields = [.contentType: "application/json", .userAgent: "Rockpool"]
        let id = UUIDv7.make(at: now())
        var draft = QueuedWriteDraft(
            id: id, request: head, body: .inline(message.serialized()), upstream: kind.upstreamName(of: head.origin),
            lane: lane ?? "\(kind.rawValue):\(id)", idempotencyKey: key, keyIsClients: true)
        draft.noMerge = true
        draft.share = .nobody
        let operation = try await data.append(draft)
        notifier.tell(operation)
        return operation
    }
}

/// Thrown when a webhook has not accepted its notices for a long time.
struct TooManyWaiting: Error, CustomStringConvertible {
    var origin: String
    var description: String { "\(OwnMessages.webhookLimit) notices wait for \(origin)" }
}
