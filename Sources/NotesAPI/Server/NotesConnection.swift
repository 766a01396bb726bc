// One connection of the notes server: collects a request, carries it out and writes the response (RFC 9112).
import HTTPTypes
import NIOCore
import NIOHTTP1
import RockpoolCore

/// NIO's preceding pipeline handler passes one request at a time, so this handler holds at most one.
final class NotesConnection: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    /// Bytes of each piece of a trickling body.
    private static let pieceBytes = 16

    private let server: NotesServer
    private let bodyLimit: Int64
    private var head: HTTPRequestHead?
    private var body: [UInt8] = []
    private var isTooLarge = false

    init(server: NotesServer) {
        self.server = server
        bodyLimit = server.bodyLimit
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            self.head = head
            body = []
            isTooLarge = false
            if head.headers[canonicalForm: "expect"].contains("100-continue") {
                context.writeAndFlush(wrapOutboundOut(.head(.init(version: head.version, status: .continue))), promise: nil)
            }
        case .body(let buffer):
            isTooLarge = isTooLarge || Int64(body.count + buffer.readableBytes) > bodyLimit
            if !isTooLarge { body.append(contentsOf: buffer.readableBytesView) }
        case .end:
            guard let head else { return }
            receive(head, context: context)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    private func receive(_ head: HTTPRequestHead, context: ChannelHandlerContext) {
        guard let request = NotesRequest(head, body: body) else {
            return deliver(
                .answer(.problem(400, about: "malformed", detail: "This request has no method or fields of HTTP."), trickle: nil),
                context: context)
        }
        guard !isTooLarge else {
            return deliver(.answer(.problem(413, about: "too-large", detail: "The body is too large."), trickle: nil), context: context)
        }
        switch server.arrive(request) {
        case .deliver(let delivery): deliver(delivery, context: context)
        case .later(let ticket, let delay):
            schedule(after: delay, context: context) { $0.deliver($0.server.carryOut(ticket), context: $1) }
        }
    }

    private func deliver(_ delivery: NotesStore.Delivery, context: ChannelHandlerContext) {
        switch delivery {
        case .drop: context.close(promise: nil)
        case .answer(let reply, let trickle) where reply.delay > .zero:
            schedule(after: reply.delay, context: context) { $0.write(reply, trickle: trickle, context: $1) }
        case .answer(let reply, let trickle): write(reply, trickle: trickle, context: context)
        }
    }

    private func write(_ reply: NotesReply, trickle: TimeSpan?, context: ChannelHandlerContext) {
        guard let request = head, context.channel.isActive else { return }
        var headers = HTTPHeaders(reply.fields.map { ($0.name.rawName, $0.value) })
        headers.add(name: "Date", value: HTTPDate.format(server.now()))
        if reply.status != 204, reply.status != 304 {
            headers.replaceOrAdd(name: "Content-Length", value: String(reply.body.count))
        }
        let response = HTTPResponseHead(version: request.version, status: .init(statusCode: reply.status), headers: headers)
        context.writeAndFlush(wrapOutboundOut(.head(response)), promise: nil)
        let hasBody = request.method != .HEAD && reply.status != 204 && reply.status != 304
        writeBody(hasBody ? reply.body[...] : [], every: trickle, closes: !request.isKeepAlive, context: context)
    }

    private func writeBody(_ rest: ArraySlice<UInt8>, every pause: TimeSpan?, closes: Bool, context: ChannelHandlerContext) {
        let piece = pause == nil ? rest : rest.prefix(Self.pieceBytes)
        if !piece.isEmpty {
            context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(context.channel.allocator.buffer(bytes: piece)))), promise: nil)
        }
        guard piece.count < rest.count, let pause else { return finish(closes: closes, context: context) }
        schedule(after: pause, context: context) { $0.writeBody(rest.dropFirst(piece.count), every: pause, closes: closes, context: $1) }
    }

    private func finish(closes: Bool, context: ChannelHandlerContext) {
        guard closes else { return context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil) }
        let promise = context.eventLoop.makePromise(of: Void.self)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: promise)
        promise.futureResult.assumeIsolated().whenComplete { _ in context.close(promise: nil) }
    }

    /// Runs a step later on this connection's event loop, even if its client has disconnected.
    private func schedule(
        after delay: TimeSpan, context: ChannelHandlerContext, step: @escaping (NotesConnection, ChannelHandlerContext) -> Void
    ) {
        context.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(delay.milliseconds)) { step(self, context) }
    }
}

extension NotesRequest {
    /// Nil if HTTPTypes rejects the method or a field name.
    init?(_ head: HTTPRequestHead, body: [UInt8]) {
        guard let method = HTTPRequest.Method(head.method.rawValue) else { return nil }
        var fields = HTTPFields()
        for (name, value) in head.headers {
            guard let name = HTTPField.Name(name) else { return nil }
            fields.append(HTTPField(name: name, value: value))
        }
        self.init(method: method, target: head.uri, fields: fields, body: body)
    }
}
