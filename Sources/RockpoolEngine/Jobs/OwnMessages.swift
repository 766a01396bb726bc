// Puts Rockpool's own messages into the outbox (docs/outbox.md#messages).
import HTTPTypes
import Logging
import NIOCore
package import RockpoolCore
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

/// Messages of Rockpool's own as they are sent: signed anew each time (docs/outbox.md#messages).
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

/// Sends notices: webhooks through the outbox, the others to programs of this machine (docs/guide/operating.md#alarms).
package struct NoticeSender: Sendable {
    /// The outcome of sending one notice.
    package enum Outcome: Sendable {
        /// A program has taken it.
        case sent
        /// A webhook's operation.
        case queued(QueuedWrite)
        /// The reason, in words.
        case failed(String)
    }

    private let messages: OwnMessages
    private let local: any LocalNotices
    private let logger: Logger
    private let now: @Sendable () -> Timestamp

    init(messages: OwnMessages, local: any LocalNotices, logger: Logger, now: @escaping @Sendable () -> Timestamp) {
        (self.messages, self.local, self.logger, self.now) = (messages, local, logger, now)
    }

    /// Sends a notice by the way of its rule; logs a failure.
    @discardableResult
    package func send(_ notice: Notice, by rule: NoticeRule) async -> Outcome {
        do {
            if let webhook = rule.webhook { return .queued(try await messages.queue(notice, to: webhook)) }
            if rule.desktop {
                try await local.show(notice)
            } else {
                try await local.run(rule.command, input: notice.json(at: now()).serialized())
            }
            return .sent
        } catch {
            logger.warning(
                "a notice was not sent",
                metadata: ["event": "\(notice.kind?.rawValue ?? "test")", "target": "\(rule.target)", "error": "\(error)"])
            return .failed("\(error)")
        }
    }
}

/// Runs the commands of notices.
package protocol LocalNotices: Sendable {
    /// Runs a program without a shell, with `input` on its standard input.
    /// - Throws: the reason why it did not succeed, in words.
    func run(_ command: [String], input: [UInt8]) async throws
    /// Shows a notification on the desktop.
    /// - Throws: the reason why it cannot be shown.
    func show(_ notice: Notice) async throws
}

/// No programs, as in tests of the engine.
package struct NoLocalNotices: LocalNotices {
    package struct Unavailable: Error {}

    package init() {}

    package func run(_ command: [String], input: [UInt8]) async throws { throw Unavailable() }
    package func show(_ notice: Notice) async throws { throw Unavailable() }
}
