// How the write pipeline treats writes of one shape (docs/architecture.md#relays).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// The writes of one shape, whatever their bodies are and whatever else they carry.
final class WriteRule: Sendable {
    /// What the pipeline has made of one of them.
    let passed: PassedWrite
    let basis: RelayBasis
    /// Of a write without its body.
    private let fingerprint: WriteFingerprint
    /// The head as it is sent: the lines up to the other fields, and those, without the operation's key and the length.
    private let start: [UInt8]
    private let lines: OutboundLines
    private let names: PlainLineNames
    /// The heads of the write that the pipeline has shown: before fields are added for its upstream, as its operation has it, and as the pipeline
    /// works with it.
    private let (unaddressed, recorded, handled): (ExampleHead, ExampleHead, ExampleHead)
    /// The name of the field with the key, and of the one that tells identities apart where its values are no part of the shape.
    private let (keyName, identifying): ([UInt8], [UInt8]?)
    /// What an answer without a `Location` invalidates; nil if that takes more than these URLs.
    let places: [String]?
    /// What an answer makes older than a write nearby.
    let near: [String]
    /// True if a second effect of a write is harmless, or prevented by its key.
    let isRepeatable: Bool
    private let learned: Mutex<(templates: RelayTemplates, validity: RelayValidity, usedAt: Timestamp)>

    /// Nil if the pipeline has changed what it does not look at, or looks at more than the shape.
    /// - Parameters:
    ///   - places: what an answer without a `Location` invalidates; nil if that takes more than these URLs.
    ///   - near: what an answer makes older than a write nearby.
    init?(
        _ passed: PassedWrite, as plain: PlainWriteCopy, trace: Trace, gateway: GatewayAddress?, places: [String]?, near: [String],
        validity: RelayValidity, now: Timestamp
    ) {
        var request = passed.request
        request.head = passed.unkeyed
        let bytes = plain.head.span
        keyName = Array(passed.upstream.idempotency.name.canonicalName.utf8)
        identifying = passed.upstream.identity.fieldName.flatMap { $0.plainKind.isOwn ? Array($0.canonicalName.utf8) : nil }
        guard let lines = OutboundLines(plain.write.lines, in: bytes, sent: request.head.fieldLines) else { return nil }
        (self.passed, self.places, self.near, self.lines) = (passed, places, near, lines)
        names = PlainLineNames(of: plain.write.lines, in: bytes)
        let example = names.fields(of: plain.write.lines, in: bytes, .read, .free, .key, .credential)
        unaddressed = ExampleHead(passed.head, of: example)
        recorded = ExampleHead(passed.operation.request, of: example)
        handled = ExampleHead(passed.received, of: example)
        basis = RelayBasis(request, plan: passed.plan, trace: trace, gateway: gateway)
        fingerprint = WriteFingerprint(passed.operation.request)
        isRepeatable = passed.received.method.isIdempotent || passed.upstream.idempotency.honoured == .yes
        start = Array("\(request.head.method.rawValue) \(request.head.target)".utf8) + request.head.startOfFields
        learned = Mutex((RelayTemplates(), validity, now))
        guard isFor(plain.write, in: bytes), !passed.operation.keyIsClients || passed.upstream.idempotency.name.plainKind.isOwn else {
            return nil
        }
    }

    var validity: RelayValidity { learned.withLock { $0.validity } }

    /// Takes the pattern of a response that the pipeline has just passed on.
    func learn(_ template: RelayTemplate, validity: RelayValidity) {
        learned.withLock { learned in
            learned.templates.learn(template)
            learned.validity = validity
        }
    }

    /// True for a write that has a key of its client as the example has, and no other field that the configuration makes decisions depend on.
    func isFor(_ write: PlainWrite, in bytes: Span<UInt8>) -> Bool {
        let key = write.lines.value(of: keyName, in: bytes)
        return passed.operation.keyIsClients == (key != nil) && key?.isEmpty != true
            && identifying.map { write.lines.value(of: $0, in: bytes) == nil } ?? true
    }

    /// True if this rule makes of a write what the pipeline has sent for it.
    func agrees(with other: PassedWrite, as plain: PlainWriteCopy) -> Bool {
        passed.plan == other.plan && passed.identity == other.identity
            && head(of: plain.write, in: plain.head.span) == Array(
                "\(other.request.head.method.rawValue) \(other.request.head.target)".utf8)
                + other.unkeyed.startOfFields + other.unkeyed.fieldLines.flatMap(\.self)
    }

    private func head(of write: PlainWrite, in bytes: Span<UInt8>) -> [UInt8] {
        var head = start
        head.reserveCapacity(start.count + write.head.count + 256)
        lines.write(write.lines, in: bytes, to: &head)
        return head
    }

    /// The relay of a write with this body; nil if its client has used its key before, as far as that is known, or it is none.
    /// - Parameter address: the client's IP address.
    func relay(
        of write: PlainWrite, in bytes: Span<UInt8>, body: ByteBuffer, from address: String, by writes: WritePipeline, now: Timestamp
    ) -> Relay? {
        let (templates, last) = learned.withLock { learned in
            defer { learned.usedAt = now }
            return (learned.templates.all, learned.usedAt)
        }
        let own = names.fields(of: write.lines, in: bytes, .free, .key)
        let head = handled.with(own, in: write.lines)
        var received = ReceivedWrite(
            operation: passed.operation, head: unaddressed.with(own, in: write.lines), body: .bytes(body), mustWait: false)
        received.operation.request = recorded.with(own, in: write.lines)
        received.operation.viewer = Viewer.Program(address: address, userAgent: received.head.fields[.userAgent] ?? "")
        if passed.operation.principal == nil { received.operation.request.fields[.rockpoolClient] = address.isEmpty ? nil : address }
        received.operation.id = UUIDv7.make(at: now)
        received.operation.idempotencyKey = UUIDv7.make(at: now)
        if passed.operation.keyIsClients {
            guard let key = received.head.clientKey(for: passed.upstream.idempotency), key.utf8.count <= IdempotencyKey.lengthLimit else {
                return nil
            }
            received.operation.idempotencyKey = key
        }
        let content = Array(body.readableBytesView)
        received.operation.body = .inline(content)
        received.operation.fingerprint = fingerprint.of(content)
        let claim = passed.operation.keyIsClients ? writes.claimNewKey(of: received.operation) : nil
        guard (claim != nil) == passed.operation.keyIsClients else { return nil }
        let relayed = RelayedWrite(
            received, of: head, body: body, under: claim, by: self, isFollowing: now - last <= RelayedWrite.quiet, of: writes)
        return Relay(
            basis: basis, madeAt: relayed.sentAt, bytes: sent(write, in: bytes, key: received.operation.idempotencyKey, body),
            templates: templates,
            identity: passed.identity, write: relayed)
    }

    private func sent(_ write: PlainWrite, in received: Span<UInt8>, key: String, _ body: ByteBuffer) -> ByteBuffer {
        var bytes = ByteBuffer()
        bytes.reserveCapacity(start.count + write.head.count + 384 + body.readableBytes)
        bytes.writeBytes(head(of: write, in: received))
        let settings = passed.upstream.idempotency
        if settings.honoured != .no, !passed.operation.keyIsClients {
            bytes.writeString("\(settings.name.rawName): \(IdempotencyKey.fieldValue(key, format: settings.format))\r\n")
        }
        bytes.writeString("Content-Length: \(body.readableBytes)\r\n\r\n")
        bytes.writeImmutableBuffer(body)
        return bytes
    }
}

/// The head of one write of a shape. What decisions look at is the same in each of them, what no decision depends on is each one's own.
private struct ExampleHead {
    /// Without its fields.
    private let start: RequestHead
    /// The fields in the place of each line that decisions look at, with those that were added before it.
    private let read: [[HTTPField]]
    private let after: [HTTPField]

    /// - Parameter lines: the fields of the lines that the head was made of.
    init(_ head: RequestHead, of lines: [HTTPField]) {
        start = RequestHead(method: head.method, origin: head.origin, target: head.target, fields: [:])
        var rest = head.fields.filter { !$0.name.plainKind.isOwn }[...]
        read = lines.filter { !$0.name.plainKind.isOwn }.map { line in
            guard let place = rest.firstIndex(where: { $0.name == line.name }) else { return [] }
            defer { rest = rest[(place + 1)...] }
            return Array(rest[...place])
        }
        after = Array(rest)
    }

    /// The head of a write with these lines.
    /// - Parameter own: the fields of those that no decision depends on, in their order.
    func with(_ own: [HTTPField], in lines: PlainLines) -> RequestHead {
        var (head, own, read) = (start, own[...], read[...])
        for index in 0..<lines.count {
            let fields = lines.kind(at: index).isOwn ? own.popFirst().map { [$0] } : read.popFirst()
            for field in fields ?? [] { head.fields.append(field) }
        }
        for field in after { head.fields.append(field) }
        return head
    }
}
