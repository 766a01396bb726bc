// How the write pipeline treats writes that differ in nothing but their bodies (docs/architecture.md#relays).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// The writes with one head, but for the length of the body.
final class WriteRule: Sendable {
    /// What the pipeline has made of one of them.
    let passed: PassedWrite
    private let before: [UInt8]
    private let after: [UInt8]
    private let listener: String
    private let isLocalClient: Bool
    private let basis: RelayBasis
    /// Of a write without its body.
    private let fingerprint: WriteFingerprint
    /// The head as it is sent, without the operation's key, the length and the blank line.
    private let lines: ByteBuffer
    /// What an answer without a `Location` invalidates; nil if that takes more than these URLs.
    let places: [String]?
    /// What an answer makes older than a write nearby.
    let near: [String]
    /// True if a second effect of a write is harmless, or prevented by its key.
    let isRepeatable: Bool
    private let learned: Mutex<(templates: [RelayTemplate], validity: RelayRule.Validity, usedAt: Timestamp)>

    /// Maximum number of kinds of responses; beyond it the oldest is forgotten.
    private static let kindLimit = 4

    /// - Parameters:
    ///   - places: what an answer without a `Location` invalidates; nil if that takes more than these URLs.
    ///   - near: what an answer makes older than a write nearby.
    init(
        _ passed: PassedWrite, as plain: PlainWriteCopy, isLocalClient: Bool, trace: Trace, places: [String]?,
        near: [String], validity: RelayRule.Validity, now: Timestamp
    ) {
        (self.passed, self.isLocalClient, self.places, self.near) = (passed, isLocalClient, places, near)
        var request = passed.request
        request.head = passed.unkeyed
        basis = RelayBasis(request, plan: passed.plan, trace: trace)
        fingerprint = WriteFingerprint(passed.operation.request)
        isRepeatable = passed.received.method.isIdempotent || passed.upstream.idempotency.honoured == .yes
        (before, after, listener) = (plain.before, plain.after, plain.listener)
        lines = request.head.lines
        learned = Mutex(([], validity, now))
    }

    var validity: RelayRule.Validity { learned.withLock { $0.validity } }

    /// Takes the pattern of a response that the pipeline has just passed on.
    func learn(_ template: RelayTemplate, validity: RelayRule.Validity) {
        learned.withLock { learned in
            if learned.templates.count == Self.kindLimit { learned.templates.removeFirst() }
            learned.templates.append(template)
            learned.validity = validity
        }
    }

    /// True for a write with this head, but for the length of its body.
    func isFor(_ write: PlainWrite, in bytes: Span<UInt8>, at listener: String, isLocalClient: Bool) -> Bool {
        listener == self.listener && isLocalClient == self.isLocalClient && PlainFields.isExactly(bytes, at: write.before, before)
            && PlainFields.isExactly(bytes, at: write.after, after)
    }

    /// The relay of a write with this body.
    func relay(of body: ByteBuffer, by writes: WritePipeline, now: Timestamp) -> Relay {
        let (templates, last) = learned.withLock { learned in
            defer { learned.usedAt = now }
            return (learned.templates, learned.usedAt)
        }
        var write = ReceivedWrite(operation: passed.operation, head: passed.head, body: .bytes(body), mustWait: false)
        write.operation.id = UUIDv7.make(at: now)
        write.operation.idempotencyKey = UUIDv7.make(at: now)
        let bytes = Array(body.readableBytesView)
        write.operation.body = .inline(bytes)
        write.operation.fingerprint = fingerprint.of(bytes)
        let relayed = RelayedWrite(write, body: body, by: self, isFollowing: now - last <= RelayedWrite.quiet, of: writes)
        return Relay(
            basis: basis, madeAt: now, bytes: sent(key: write.operation.idempotencyKey, body), templates: templates, first: nil,
            write: relayed)
    }

    private func sent(key: String, _ body: ByteBuffer) -> ByteBuffer {
        var bytes = lines
        bytes.reserveCapacity(minimumWritableBytes: 128 + body.readableBytes)
        let settings = passed.upstream.idempotency
        if settings.honoured != .no {
            bytes.writeString("\(settings.name.rawName): \(IdempotencyKey.fieldValue(key, format: settings.format))\r\n")
        }
        bytes.writeString("Content-Length: \(body.readableBytes)\r\n\r\n")
        bytes.writeImmutableBuffer(body)
        return bytes
    }
}
