// One call of gRPC between the stream of its client and a stream of its upstream (docs/guide/programs.md#grpc; RFC 9113 §8.1).
import HTTPTypes
import NIOCore
import NIOHPACK
import NIOHTTP2
import RockpoolCore
import RockpoolEngine

/// Passes frames as they come, in both directions at once, each at the rate of the stream that they leave on; resets and the loss of the
/// upstream's connection end the call as they would without a proxy. On the event loop only.
final class RelayedCall {
    private var call: PassedCall
    private let connections: CallConnections
    private let isLocalClient: Bool
    /// The streams of the client and of the upstream.
    private let (near, far) = (CallStream(), CallStream())
    private var connection: CallConnection?
    private var backlog: StreamBacklog?
    /// Frames of the request that wait for the upstream's stream; nil once it is there.
    private var held: [HTTP2Frame.FramePayload]? = []
    private var hasHead = false
    /// True if the client has sent the end of its request, and the upstream that of its answer.
    private var (isAsked, isAnswered) = (false, false)
    /// When everything for the client was sent.
    private var written: EventLoopFuture<Void>?
    private var (sent, received) = (Int64(0), Int64(0))
    private var failure: TransferFailure?

    init(_ call: PassedCall, over connections: CallConnections, isLocalClient: Bool) {
        (self.call, self.connections, self.isLocalClient) = (call, connections, isLocalClient)
    }

    /// Takes the frames of a client's stream from behind its gate.
    /// - Parameter isWhole: true if the request has no messages.
    func begin(on stream: any Channel, isWhole: Bool) throws {
        let pipeline = stream.pipeline.syncOperations
        let gate = try pipeline.handler(type: StreamGate.self)
        (near.call, far.call) = (self, self)
        try pipeline.addHandler(near, position: .after(gate))
        // A client may take its messages as slowly as it likes: its upstream waits, and holds the rest.
        backlog = gate.backlog
        backlog?.open()
        connections.began()
        held = [.headers(.init(headers: HPACKHeaders(request: call.request), endStream: isWhole))]
        isAsked = isWhole
        let me = NIOLoopBound(self, eventLoop: stream.eventLoop)
        connections.connection(to: call.request.origin, isLocalClient: isLocalClient).flatMap { connection in
            me.value.connection = connection.value
            let handler = me.value.far
            return connection.value.openStream { try $0.pipeline.syncOperations.addHandler(handler) }
        }.whenComplete { result in
            switch result {
            case .success: me.value.opened()
            case .failure(let error): me.value.fail(TransferFailure(connecting: error))
            }
        }
        stream.read()
    }

    private func opened() {
        guard !near.isClosed else { return far.abandon() }
        for payload in held ?? [] { far.write(payload) }
        held = nil
        far.flush()
        near.resume()
    }

    // MARK: frames

    func receive(_ payload: HTTP2Frame.FramePayload, from stream: CallStream) {
        if stream === near { ask(payload) } else { answer(payload) }
    }

    private func ask(_ payload: HTTP2Frame.FramePayload) {
        switch payload {
        case .data(let data):
            sent += Int64(data.data.readableBytes)
            isAsked = isAsked || data.endStream
        case .headers(let trailers): isAsked = isAsked || trailers.endStream
        default: return
        }
        if held == nil { far.write(payload) } else { held?.append(payload) }
    }

    private func answer(_ payload: HTTP2Frame.FramePayload) {
        switch payload {
        case .data(let data):
            if let number = far.number { connection?.window.delivered(data.data.readableBytes, on: number) }
            received += Int64(data.data.readableBytes)
            send(payload, isEnd: data.endStream)
        case .headers(var head):
            let fields = HTTPFields(head.headers)
            if hasHead {
                head.headers = HPACKHeaders(HopByHop.stripped(answer: fields))
            } else {
                var answer = ResponseHead(
                    status: head.headers.first(name: ":status").flatMap { Int($0) } ?? 502, fields: fields)
                hasHead = answer.status >= 200
                answer = hasHead ? call.answered(answer) : ResponseHead(status: answer.status, fields: HopByHop.stripped(answer: fields))
                head.headers = HPACKHeaders(response: answer)
            }
            send(.headers(head), isEnd: head.endStream)
        default: return
        }
    }

    /// Sends a frame of the answer.
    private func send(_ payload: HTTP2Frame.FramePayload, isEnd: Bool) {
        isAnswered = isAnswered || isEnd
        let promise = connections.loop.makePromise(of: Void.self)
        written = promise.futureResult
        near.write(payload, promise: promise)
    }

    func flush(after stream: CallStream) { (stream === near ? far : near).flush() }

    // MARK: flow control

    func mayRead(from stream: CallStream) -> Bool { stream === near ? held == nil && far.isWritable : near.isWritable }

    /// A stream takes frames again.
    func resume(before stream: CallStream) { (stream === near ? far : near).resume() }

    // MARK: end

    /// - Parameter code: the reason of a reset; nil if the stream ended in order, or with its connection.
    func ended(_ stream: CallStream, code: CallStream.Code?) {
        if stream === near { nearEnded(code) } else { farEnded(code) }
        if near.isClosed, far.isClosed { (near.call, far.call, connection) = (nil, nil, nil) }
    }

    /// The client has cancelled the call or has left, or it has its end.
    private func nearEnded(_ code: CallStream.Code?) {
        if !isAsked || !isAnswered { far.reset(isAnswered ? .noError : code ?? .cancel) }
        backlog?.close()
        connections.ended()
        call.end(
            sent: sent, received: received,
            error: failure.map(\.proxyErrorName) ?? (isAnswered && code != .cancel ? nil : ReplyEnd.clientLeft))
        // No stream was opened for it, and none will be.
        if held != nil { (near.call, far.call) = (nil, nil) }
    }

    private func farEnded(_ code: CallStream.Code?) {
        guard !near.isClosed else { return }
        if isAnswered {
            // What the client still sends has no reader.
            endNear(.noError)
        } else if let code {
            failure = TransferFailure(kind: .reset, sent: .maybe, detail: "the upstream reset the stream (\(code))")
            endNear(connection?.meaning(of: code, on: far.number) ?? code)
        } else {
            fail(TransferFailure(kind: .reset, sent: .maybe, detail: "the connection ended during the call"))
        }
    }

    /// Resets the client's stream behind all that was written to it, if it does not end by itself.
    private func endNear(_ code: CallStream.Code) {
        near.flush()
        let me = NIOLoopBound(self, eventLoop: connections.loop)
        guard let written else { return near.reset(code) }
        written.whenComplete { _ in me.value.near.reset(code) }
    }

    /// Ends a call that its upstream cannot end.
    private func fail(_ failure: TransferFailure) {
        guard !near.isClosed else { return }
        self.failure = failure
        let head = call.failed(failure)
        let fields = head.map { HPACKHeaders(response: $0) } ?? HPACKHeaders(RemoteCall.unavailable(call.detail(of: failure)))
        send(.headers(.init(headers: fields, endStream: true)), isEnd: true)
        endNear(.noError)
    }
}

extension HPACKHeaders {
    /// The head of a request (RFC 9113 §8.3.1).
    fileprivate init(request: RequestHead) {
        self.init([
            (":method", request.method.rawValue), (":scheme", request.origin.scheme.rawValue), (":path", request.target),
            (":authority", request.fields[.hostField] ?? request.origin.authority),
        ])
        for field in request.fields where field.name != .hostField { add(field) }
    }

    /// The head of a response (RFC 9113 §8.3.2).
    fileprivate init(response: ResponseHead) {
        self.init([(":status", String(response.status))])
        for field in response.fields { add(field) }
    }

    /// Trailers.
    fileprivate init(_ fields: HTTPFields) {
        self.init()
        for field in fields { add(field) }
    }

    private mutating func add(_ field: HTTPField) { add(name: field.name.canonicalName, value: field.value) }

    fileprivate func first(name: String) -> String? { first { $0.name == name }?.value }
}

extension HTTPFields {
    /// The fields of a head or of trailers without its pseudo-header fields.
    fileprivate init(_ headers: HPACKHeaders) {
        self.init()
        for (name, value, _) in headers where name.utf8.first != UInt8(ascii: ":") {
            if let name = HTTPField.Name(name) { append(HTTPField(name: name, value: value)) }
        }
    }
}

/// Calls of gRPC on the streams of a client: each goes on on a stream of its upstream (docs/guide/programs.md#grpc).
extension ConnectionHandler {
    /// Hands the stream of a call over to a stream of its upstream: nothing of a call is stored, and its messages go both ways at once.
    /// - Returns: False for any other request.
    ///
    /// Throws `Refusal` for invalid `Rockpool-` fields.
    func relaysCall(
        _ request: RequestHead, incoming: IncomingHead, passage: GatewayPassage?, context: ChannelHandlerContext
    ) throws(Refusal) -> Bool {
        guard wire == .stream, request.method == .post, RemoteCall.isMade(by: incoming.fields),
            let connections = try? CallConnections.of(context.channel, service: service, account: account)
        else { return false }
        var exchange = Exchange(request: request, isLocalClient: isClientLocal(context.channel), account: account)
        exchange.forwarded =
            passage?.forwarded(from: context.channel.remoteAddress?.ipAddress, listener: service.resolution.listener) ?? [:]
        exchange.gateway = passage?.address
        let call = try PassedCall(exchange, by: service.engine)
        isLeaving = true
        timer.cancel()
        let relay = RelayedCall(call, over: connections, isLocalClient: exchange.isLocalClient)
        do {
            try relay.begin(on: context.channel, isWhole: incoming.framing == .none)
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
        } catch {
            context.close(promise: nil)
        }
        return true
    }
}
