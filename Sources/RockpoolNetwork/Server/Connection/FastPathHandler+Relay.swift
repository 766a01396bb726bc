// Relayed exchanges in their connection's order (docs/architecture.md#relays).
import NIOCore
import RockpoolCore
import RockpoolEngine

extension FastPathHandler {
    /// Sends a plain request by a relay, if there is one and a connection for it.
    func beginsRelay(of request: FastPathRequest, in bytes: ByteBuffer, context: ChannelHandlerContext) -> Bool {
        guard connection.mayAnswerAtOnce(context: context), request.length == bytes.readableBytes,
            let relay = engine.relays.relay(
                for: request, in: bytes, at: listener, from: address, keepsPath: keepsPath,
                isLocalClient: connection.isClientLocal(context.channel), last: &lastCredential),
            let way = pool.take(to: RelayDestination(relay.basis.request), timeout: relay.basis.request.timeouts.connect)
        else { return false }
        // The full path refuses it.
        guard let place = free(), relay.first?.begin() != false else {
            pool.takeBack(way, isUsed: false)
            return false
        }
        begin(relay, on: way, of: .read(request), at: place, in: bytes, context: context)
        return true
    }

    /// Sends a plain write by a relay, if there is one and a connection for it; or waits for the rest of its body.
    func beginsRelay(of write: PlainWrite, in bytes: ByteBuffer, context: ChannelHandlerContext) -> Bool {
        guard keepsPath, connection.mayAnswerAtOnce(context: context) else { return false }
        if write.length > bytes.readableBytes {
            guard
                engine.relays.expects(
                    write, in: bytes, at: listener, isLocalClient: connection.isClientLocal(context.channel))
            else { return false }
            let me = NIOLoopBound(self, eventLoop: context.eventLoop)
            let end = partialEnd ?? .now() + Self.patience
            partialEnd = end
            partial = (bytes, context.eventLoop.scheduleTask(deadline: end) { me.value.decodePartial() })
            return true
        }
        guard write.length == bytes.readableBytes, let place = free(),
            let relay = engine.relays.relay(
                of: write, in: bytes, at: listener, from: address, isLocalClient: connection.isClientLocal(context.channel)),
            let sent = relay.write,
            let way = pool.take(
                to: RelayDestination(relay.basis.request), idleAtMost: sent.isRepeatable ? nil : RelayedWrite.quiet,
                timeout: sent.isRepeatable || sent.isFollowing ? relay.basis.request.timeouts.connect : nil)
        else { return false }
        begin(relay, on: way, of: .write(write), at: place, in: bytes, context: context)
        return true
    }

    /// The place of an exchange; nil if its client has as much under way as it may.
    private func free() -> ExchangePlace?? {
        do throws(Refusal) { return .some(try connection.place(.request)) } catch { return nil }
    }

    /// The time after which a slow body takes the full path, where its rate is watched.
    private static let patience = TimeAmount.milliseconds(200)

    func takePartial() -> ByteBuffer? {
        guard let (bytes, limit) = partial else { return nil }
        partial = nil
        limit.cancel()
        return bytes
    }

    /// Lets a write take the full path, because the rest of its body may not come.
    func decodePartial() {
        guard let context, let bytes = takePartial() else { return }
        decode(bytes, after: nil, endsWithBody: false, context: context)
    }

    private func begin(
        _ relay: Relay, on way: RelayConnection, of request: RelayedRequest.Form, at place: ExchangePlace?, in bytes: ByteBuffer,
        context: ChannelHandlerContext
    ) {
        partialEnd = nil
        connection.requests += 1
        connection.current = CurrentExchange(relayed: connection.requests, place: place)
        connection.enter(.answering, context: context)
        let exchange = RelayedExchange(relay, on: way, for: self, relays: engine.relays, executor: pool.executor)
        relayed = RelayedRequest(number: connection.requests, bytes: bytes, form: request, exchange: exchange)
        exchange.start()
    }

    func end(_ relayed: RelayedRequest, isComplete: Bool) {
        self.relayed = nil
        connection.finishExchange(relayed.number, staysOpen: isComplete ? true : nil)
        receiveHeld()
    }

    /// Processes what was received while a relay answered.
    private func receiveHeld() {
        guard let context else { return }
        if held.readableBytes > 0 {
            let bytes = held
            held = ByteBuffer()
            connection.holdsBytes = false
            receive(bytes, context: context)
        }
        // The decoder gets nothing after the end of the input: what was held is before it.
        guard relayed == nil, isInputEndHeld else { return }
        isInputEndHeld = false
        context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    }
}

/// The request that a relay answers.
struct RelayedRequest {
    enum Form {
        case read(FastPathRequest)
        case write(PlainWrite)
    }

    let number: Int
    let bytes: ByteBuffer
    let form: Form
    let exchange: RelayedExchange
    /// True if the reply is complete, and waits for the client to take it.
    var isComplete = false
}

extension FastPathHandler: RelayClient {
    var takesMore: Bool { context?.channel.isWritable ?? false }

    func send(_ bytes: ByteBuffer) {
        guard let context else { return }
        context.writeAndFlush(wrapOutboundOut(.byteBuffer(bytes)), promise: nil)
    }

    func relayEnded(isComplete: Bool) {
        guard let relayed else { return }
        if isComplete, !takesMore { self.relayed?.isComplete = true } else { end(relayed, isComplete: isComplete) }
    }

    func sendInterim(_ head: ResponseHead) {
        // Nobody has asked for 100 (RFC 9110 §10.1.1).
        guard let context, head.status != 100 else { return }
        WholeReply(head: head, framing: .bodiless).writeInterim(context: context, wire: .plain)
    }

    func handOver(_ outcome: RelayOutcome) {
        guard let relayed, let context else { return }
        let early = EarlyAnswer(to: relayed.exchange.relay, outcome)
        self.relayed = nil
        connection.requests -= 1
        (connection.kept, connection.current) = (connection.current?.place, nil)
        connection.timer.enter(.idle)
        (connection.early, connection.wasLost) = (early, early.isTaken)
        switch relayed.form {
        case .read(let request):
            let plain = PlainCopy(request, in: relayed.bytes, listener: listener, keepsPath: keepsPath, last: &lastCredential)
            decode(relayed.bytes, after: plain, endsWithBody: false, context: context)
        case .write(let write):
            connection.arrivingWrite = PlainWriteCopy(write, in: relayed.bytes, listener: listener)
            decode(relayed.bytes, after: nil, endsWithBody: true, context: context)
        }
        receiveHeld()
    }
}
