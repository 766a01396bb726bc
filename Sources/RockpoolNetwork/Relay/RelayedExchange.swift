// One exchange that is passed on by its rule: usual responses go to the client as they arrive, others to the read pipeline
// (docs/architecture.md#relays).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolEngine

/// The client's side of a relayed exchange. On the event loop.
protocol RelayClient: AnyObject {
    /// True if the client takes more bytes now.
    var takesMore: Bool { get }
    /// Sends bytes of the reply.
    func send(_ bytes: ByteBuffer)
    /// The reply is complete; or it has broken off, and the connection with it.
    func relayEnded(isComplete: Bool)
    /// The request goes to its pipeline, with its response if there is one. No final response was sent to the client.
    func handOver(_ outcome: RelayOutcome)
    /// Sends a 1xx response on to the client.
    func sendInterim(_ head: ResponseHead)
}

/// A request that was sent on a relay's connection. On the event loop only.
final class RelayedExchange {
    private enum Phase {
        /// The write is being recorded; nothing is sent.
        case recording
        case head([RelayTemplate])
        /// The effects of a write are worked into the cache, before its answer is relayed.
        case noting
        case relaying(RelayTemplate)
        /// The read pipeline has the response, and reads its body here.
        case handedOver(BodyPipe)
        case ended
    }

    /// The largest body in bytes that is waited for, to look whether it names the origin.
    private static let lookLimit = Int.kib(64)

    let relay: Relay
    private let connection: RelayConnection
    private weak var client: (any RelayClient)?
    /// Nil for a read that its pipeline sends.
    private let relays: Relays?
    private let executor: LoopExecutor
    private let began = ContinuousClock.now
    private var phase: Phase
    private var lastProgress = NIODeadline.now()
    /// Bytes of the head that are not parsed.
    private var pending = ByteBuffer()
    private var received: Int64 = 0
    private var body = RelayBody(length: 0, isChunked: false)
    private var closes = false
    // Of a relayed reply.
    private var headAfter = Duration.zero
    private var passed = ByteBuffer()
    // Of a response for the pipeline.
    private var heads: ResponseHeads
    private var rawHead: [UInt8] = []
    /// The longest pause within the body.
    private var idleLimit: TimeSpan
    /// When the head of the response was complete.
    private var answeredAt = ContinuousClock.now
    /// Bytes of its body.
    private var bodyBytes: Int64 = 0
    /// True if the reader has delayed the body.
    private var wasDelayed = false

    init(_ relay: Relay, on connection: RelayConnection, for client: any RelayClient, relays: Relays?, executor: LoopExecutor) {
        (self.relay, self.connection, self.client, self.relays, self.executor) = (relay, connection, client, relays, executor)
        phase = .head(relay.templates)
        idleLimit = relay.basis.request.timeouts.idle
        heads = ResponseHeads(method: relay.basis.request.head.method.rawValue, allowsBareLF: relay.basis.request.isDeclared)
    }

    /// Sends the request. Its end may be reported before this returns.
    func start() {
        guard let write = relay.write else { return connection.send(relay.bytes, for: self) }
        phase = .recording
        let me = NIOLoopBound(self, eventLoop: executor.loop)
        write.record { [loop = executor.loop] in loop.execute { me.value.send(write) } }
    }

    /// Sends a write that is recorded.
    private func send(_ write: RelayedWrite) {
        guard case .recording = phase else {
            write.end()
            return connection.release(keeps: true)
        }
        lastProgress = .now()
        phase = .head(relay.templates)
        if connection.isOpen { connection.send(relay.bytes, for: self) } else { handOver(RelayOutcome(nil)) }
    }

    // MARK: the connection's events

    func receive(_ bytes: ByteBuffer) {
        lastProgress = .now()
        received += Int64(bytes.readableBytes)
        var bytes = bytes
        switch phase {
        case .head(let templates):
            if pending.readableBytes == 0 { pending = bytes } else { pending.writeBuffer(&bytes) }
            if templates.isEmpty { parse() } else { compare(with: templates) }
        case .relaying(let template): relay(&bytes, of: template)
        case .noting: pending.writeBuffer(&bytes)
        case .handedOver(let pipe): feed(&bytes, to: pipe)
        case .recording, .ended: break
        }
    }

    /// The connection was closed, by the origin or because the network was switched off.
    /// - Parameter isBroken: true if that was not a regular end.
    func connectionClosed(isBroken: Bool) {
        switch phase {
        case .head: lost()
        case .noting: closes = true
        case .relaying(let template): end(template, error: "http_response_incomplete")
        case .handedOver(let pipe) where body.endsWithConnection && !isBroken:
            pipe.finish()
            finish()
        case .handedOver(let pipe):
            pipe.fail(TransferFailure(kind: .reset, sent: .yes, detail: "the connection was closed before the end of the body"))
            finish()
        case .recording, .ended: break
        }
    }

    /// The connection was closed before a response. Whatever may be sent twice is sent again.
    private func lost() {
        spend()
        let request = relay.basis.request
        guard relay.write != nil || request.isWrite else { return handOver(RelayOutcome(nil)) }
        let failure = TransferFailure(kind: .reset, sent: .maybe, detail: "the connection was closed before a response")
        if relay.write?.isRepeatable ?? !request.needsFreshConnection { return handOver(RelayOutcome(nil, lost: failure)) }
        connection.noteLost()
        handOver(RelayOutcome(.failure(failure)))
    }

    /// Ends the exchange if its upstream has been silent for too long.
    func endIfOverdue(at now: NIODeadline) {
        let silence = TimeSpan.milliseconds((now - lastProgress).nanoseconds / 1_000_000)
        switch phase {
        case .head where silence > relay.basis.request.timeouts.firstByte:
            let failure = TransferFailure(
                kind: .firstByteTimeout, sent: .yes, detail: "no response within \(relay.basis.request.timeouts.firstByte)")
            connection.closeSilent()
            spend()
            handOver(RelayOutcome(.failure(failure)))
        case .relaying(let template) where silence > idleLimit:
            connection.close()
            end(template, error: "connection_read_timeout")
        case .handedOver(let pipe) where silence > idleLimit:
            connection.close()
            pipe.fail(TransferFailure(kind: .idleTimeout, sent: .yes, detail: "silent for \(idleLimit) within the body"))
            finish()
        default: break
        }
    }

    // MARK: the client's events

    /// The client takes more bytes.
    func resume() {
        lastProgress = .now()
        connection.resume()
    }

    /// The client has left.
    func cancel() {
        switch phase {
        // The connection goes back once the write is recorded.
        case .recording: return phase = .ended
        case .head:
            relay.read?.leave()
            relay.write?.abandon()
            finish()
        case .noting: finish()
        case .relaying(let template): record(template, error: ReplyEnd.clientLeft)
        case .handedOver, .ended: return
        }
        phase = .ended
        connection.close()
    }

    // MARK: relaying

    private func compare(with templates: [RelayTemplate]) {
        var isIncomplete = false
        for template in templates {
            switch template.compare(pending.readableBytesUInt8Span) {
            case .matches(let match):
                switch look(at: match, of: template) {
                case .plain: break
                case .incomplete: return
                case .differs: return parse()
                }
                if let write = relay.write { return note(write, by: match, of: template) }
                return isKept(match, of: template) ? begin(match, of: template) : parse()
            case .incomplete: isIncomplete = true
            case .differs: break
            }
        }
        if !isIncomplete || pending.readableBytes > Int(ResponseHeads.headLimit.bytes) { parse() }
    }

    /// What a body is to the clients of a gateway.
    private enum Look { case plain, incomplete, differs }

    /// Looks for links of the origin in a body of JSON that has come with its head, or comes soon. The pipeline takes any that may have some.
    private func look(at match: RelayTemplate.Match, of template: RelayTemplate) -> Look {
        guard relay.basis.looksAtBodies, template.mayHaveLinks, !template.isBodiless else { return .plain }
        guard !template.isCoded, match.length ?? 0 <= Int64(Self.lookLimit) else { return .differs }
        var body = body(of: match, by: template)
        var received = pending
        received.moveReaderIndex(forwardBy: match.headLength)
        guard let data = try? body.read(&received), data.readableBytes <= Self.lookLimit else { return .differs }
        // What comes in chunks may come as slowly as it is made: the pipeline passes it on as it comes.
        guard body.isEnded else { return match.length != nil && relay.write == nil ? .incomplete : .differs }
        return relay.basis.names(data) ? .differs : .plain
    }

    /// Ends the fetch of a read, or starts to store its response. False if the read pipeline has to.
    private func isKept(_ match: RelayTemplate.Match, of template: RelayTemplate) -> Bool {
        guard template.use == .store else {
            var shown: ResponseHead?
            if template.hasTag, relay.read?.showsState == true {
                guard let fields = template.fields(of: match, in: pending.readableBytesUInt8Span) else { return false }
                shown = ResponseHead(status: template.status, fields: fields)
            }
            relay.read?.pass(shown)
            return true
        }
        guard let read = relay.read else { return false }
        // A body that arrives later is stored while it is relayed, which the pipeline does.
        guard let length = match.length, pending.readableBytes == match.headLength + Int(length),
            let body = pending.getSlice(at: pending.readerIndex + match.headLength, length: Int(length)),
            let fields = template.fields(of: match, in: pending.readableBytesUInt8Span)
        else { return false }
        let head = ResponseHead(status: template.status, fields: fields)
        return read.keep(head, body: ByteBuffer(bytes: body.readableBytesView), on: executor)
    }

    /// Works the effects of a write into the cache, then relays its answer.
    private func note(_ write: RelayedWrite, by match: RelayTemplate.Match, of template: RelayTemplate) {
        guard let fields = template.fields(of: match, in: pending.readableBytesUInt8Span) else { return parse() }
        let head = ResponseHead(status: template.status, fields: fields)
        if write.isAnswered(by: head) { return begin(match, of: template) }
        phase = .noting
        let isWhole = template.isBodiless || match.length.map { pending.readableBytes >= match.headLength + Int($0) } ?? false
        if !isWhole { connection.pause() }
        let me = NIOLoopBound(self, eventLoop: executor.loop)
        Task(executorPreference: executor) {
            await write.answered(by: head)
            me.value.noted(match, of: template)
        }
    }

    private func noted(_ match: RelayTemplate.Match, of template: RelayTemplate) {
        guard case .noting = phase else { return }
        let isCutOff = closes
        begin(match, of: template)
        guard case .relaying = phase else { return }
        if isCutOff { end(template, error: "http_response_incomplete") } else if client?.takesMore != false { connection.resume() }
    }

    private func begin(_ match: RelayTemplate.Match, of template: RelayTemplate) {
        relays?.answered(relay)
        phase = .relaying(template)
        body = body(of: match, by: template)
        closes = match.closes
        answeredAt = .now
        for range in match.passed { passed.writeImmutableBuffer(line(at: range)) }
        var head = ByteBuffer()
        head.reserveCapacity(match.headLength + 512 + min(pending.readableBytes, .kib(16)))
        HeadSerializer.writeStatusLine(template.status, into: &head)
        for part in template.parts {
            switch part {
            case .lines(let lines): head.writeBytes(lines)
            case .passed(let place): head.writeImmutableBuffer(line(at: match.passed[place]))
            case .date: if let relays { head.writeString("Date: \(relays.date)\r\n") }
            }
        }
        pending.moveReaderIndex(forwardBy: match.headLength)
        if template.isBodiless {
            head.writeStaticString("\r\n")
        } else if let length = match.length {
            head.writeString("Content-Length: \(length)\r\n\r\n")
        } else {
            head.writeStaticString("Transfer-Encoding: chunked\r\n\r\n")
        }
        headAfter = ContinuousClock.now - began
        var rest = pending
        pending = ByteBuffer()
        relay(&rest, of: template, after: head)
    }

    private func body(of match: RelayTemplate.Match, by template: RelayTemplate) -> RelayBody {
        RelayBody(length: template.isBodiless ? 0 : match.length, isChunked: match.length == nil && !template.isBodiless)
    }

    /// A line of the head that is pending.
    private func line(at range: Range<Int>) -> ByteBuffer {
        pending.getSlice(at: pending.readerIndex + range.lowerBound, length: range.count) ?? ByteBuffer()
    }

    private func relay(_ bytes: inout ByteBuffer, of template: RelayTemplate, after head: ByteBuffer? = nil) {
        do throws(Refusal) {
            let isChunked = body.isChunked
            let data = try body.read(&bytes)
            bodyBytes += Int64(data.readableBytes)
            var out = head ?? ByteBuffer()
            if isChunked {
                if data.readableBytes > 0 { HeadSerializer.writeChunk(data, into: &out) }
                if body.isEnded { out.writeStaticString("0\r\n\r\n") }
            } else if head == nil {
                out = data
            } else {
                out.writeImmutableBuffer(data)
            }
            if out.readableBytes > 0 { client?.send(out) }
        } catch {
            connection.close()
            return end(template, error: "http_protocol_error")
        }
        if body.isEnded {
            measure()
            connection.release(keeps: !closes && bytes.readableBytes == 0)
            end(template, error: nil)
        } else if client?.takesMore == false {
            wasDelayed = true
            connection.pause()
        }
    }

    private func end(_ template: RelayTemplate, error: String?) {
        record(template, error: error)
        phase = .ended
        client?.relayEnded(isComplete: error == nil)
    }

    private func record(_ template: RelayTemplate, error: String?) {
        relays?.ended(
            relay, by: template, fields: passed,
            Relays.Course(received: received, began: began, head: headAfter, end: ReplyEnd(bytes: bodyBytes, error: error)))
    }

    // MARK: the pipeline's

    private func handOver(_ outcome: RelayOutcome) {
        if case .head = phase { phase = .ended }
        client?.handOver(outcome)
    }

    /// Parses the lines of a head that is not a usual one, or of the first.
    private func parse() {
        phase = .head([])
        do throws(Refusal) {
            while let end = pending.readableBytesView.firstIndex(of: 0x0A) {
                let line = Array(pending.readableBytesView[...end])
                pending.moveReaderIndex(to: end + 1)
                rawHead += line
                switch try heads.receive(line) {
                case .more: break
                case .interim(let head):
                    client?.sendInterim(ResponseHead(status: head.status, fields: HopByHop.stripped(answer: head.fields)))
                    rawHead = []
                case .final(let head, let length, let isChunked): return begin(head, length: length, isChunked: isChunked)
                }
            }
            guard rawHead.count + pending.readableBytes <= Int(ResponseHeads.headLimit.bytes) else {
                throw .badGateway("the response's head is longer than \(ResponseHeads.headLimit)")
            }
        } catch {
            connection.close()
            spend()
            let failure = TransferFailure(kind: .protocolError, sent: .yes, detail: error.detail)
            handOver(RelayOutcome(.failure(failure)))
        }
    }

    private func begin(_ head: ResponseHead, length: Int64?, isChunked: Bool) {
        // Whatever a connection's field says but the usual: the connection is not used again.
        closes = rawHead.starts(with: Array("HTTP/1.0".utf8)) || head.endsConnection
        if head.status == 304,
            let reply = relay.read?.answer(to: ResponseHead(status: 304, fields: HopByHop.stripped(answer: head.fields)))
        {
            return answer(reply)
        }
        // The account of a rule is that of the client that it was learned from.
        let account = relays == nil ? relay.basis.request.account : nil
        let pipe = BodyPipe(budget: account?.memory ?? .own)
        answeredAt = .now
        if StreamLimits.isStream(head) { idleLimit = relay.basis.request.timeouts.streamIdle }
        body = RelayBody(length: length, isChunked: isChunked)
        var wire = WireEvidence(bytesSent: Int64(relay.bytes.readableBytes), isFreshConnection: false)
        wire.endsConnection = closes || body.endsWithConnection
        let reply = OriginReply(head: head, length: length, body: pipe, wire: wire)
        phase = .handedOver(pipe)
        let loop = executor.loop
        let me = NIOLoopBound(self, eventLoop: loop)
        pipe.onSignal { signal in loop.execute { me.value.take(signal) } }
        var rest = pending
        pending = ByteBuffer()
        feed(&rest, to: pipe)
        handOver(RelayOutcome(.success(reply), head: rawHead))
    }

    /// Answers from the store: the upstream has validated what is stored.
    private func answer(_ reply: Reply) {
        relays?.answered(relay)
        var out = ByteBuffer()
        if case .bytes(let body) = reply.body {
            bodyBytes = Int64(body.readableBytes)
            out.reserveCapacity(1024 + body.readableBytes)
            HeadSerializer.write(reply.head, framing: .length(bodyBytes), connection: nil, into: &out)
            out.writeImmutableBuffer(body)
        }
        phase = .ended
        client?.send(out)
        connection.release(keeps: !closes && pending.readableBytes == 0)
        relays?.ended(
            relay, validated: reply,
            Relays.Course(received: received, began: began, head: ContinuousClock.now - began, end: ReplyEnd(bytes: bodyBytes, error: nil)))
        client?.relayEnded(isComplete: true)
    }

    private func feed(_ bytes: inout ByteBuffer, to pipe: BodyPipe) {
        do throws(Refusal) {
            let data = try body.read(&bytes)
            bodyBytes += Int64(data.readableBytes)
            if pipe.offer(data) {
                // A reader has made room since an earlier chunk of the same turn: no signal will say so.
                if data.readableBytes > 0 { connection.resume() }
            } else {
                wasDelayed = true
                connection.pause()
            }
        } catch {
            connection.close()
            pipe.fail(TransferFailure(kind: .protocolError, sent: .yes, detail: error.detail))
            return finish()
        }
        guard body.isEnded else { return }
        measure()
        pipe.finish(heads.trailers(after: body.trailers))
        finish()
        connection.release(keeps: !closes && bytes.readableBytes == 0)
    }

    private func take(_ signal: BodyPipe.Signal) {
        guard case .handedOver = phase else { return }
        switch signal {
        case .wanted: break
        case .drained: resume()
        case .abandoned:
            finish()
            connection.close()
        }
    }

    /// Reports the rate of a whole body.
    private func measure() {
        if !wasDelayed { relay.basis.request.measured(bodyBytes, ContinuousClock.now - answeredAt) }
    }

    /// Marks the exchange as finished; the pipeline delivers the reply.
    private func finish() {
        phase = .ended
        spend()
    }

    /// Counts the bytes that were sent and received.
    private func spend() { relay.basis.request.spent(Int64(relay.bytes.readableBytes), received) }
}
