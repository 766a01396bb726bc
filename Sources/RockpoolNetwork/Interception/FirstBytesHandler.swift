// Connections whose target is known before their first byte, from SOCKS, CONNECT or a redirection by the kernel
// (docs/reference/behaviour.md#targets), and what their first bytes make of them: requests, TLS to decrypt, or bytes to pass on.
import Glibc
import HTTPTypes
import NIOCore
import NIOPosix
import NIOTLS
import RockpoolCore
import RockpoolEngine

/// Where a client's connection should lead. The rules are those of the proxy for requests and CONNECT.
struct KnownTarget {
    /// The treatment of the connection.
    enum Course {
        /// The bytes are passed on.
        case tunnel
        /// The first bytes decide: HTTP, or TLS that may be decrypted.
        case inspect
    }

    /// Lower case; an IPv6 address without brackets.
    let host: String
    let port: Int
    let service: ConnectionService
    /// True if anything that begins no request of HTTP/1 is passed on, as a tunnel would: HTTP/2 without TLS, as gRPC uses it, or another
    /// protocol.
    var mayBeTunnel = false

    var isAddress: Bool { IPAddress(host) != nil }
    var http: OriginAddress { OriginAddress(scheme: .http, host: host, port: port) }
    var https: OriginAddress { OriginAddress(scheme: .https, host: host, port: port) }
    var isDeclaredForHTTP: Bool { service.engine.upstream(for: http) != nil }
    var isDecrypted: Bool { isDecrypted(host) }
    var mayTunnel: Bool { (try? service.dialer.ports.checkTunnel(host: host, port: port)) != nil }

    func isDecrypted(_ name: String) -> Bool { service.engine.configuration.interception(host: name, port: port).isDecrypted }

    /// Throws `Refusal` for Rockpool itself, and for a port that neither tunnels nor requests may use.
    func course() throws(Refusal) -> Course {
        try service.resolution.checkNotOurs(host: host, port: port)
        if isDeclaredForHTTP || isDecrypted { return .inspect }
        if mayTunnel, port != 80 { return isAddress && service.engine.configuration.interceptsAnything ? .inspect : .tunnel }
        try service.dialer.ports.checkForwarding(to: http)
        return .inspect
    }

    /// True if bytes that are no TLS handshake are requests.
    var speaksHTTP: Bool { isDeclaredForHTTP || port == 80 || !mayTunnel }

    /// The service for requests on this connection: of this origin, or of the origin that `Host` names if the target is only an address.
    var requests: ConnectionService { isAddress && !isDeclaredForHTTP ? service.byHost() : service.inside(http) }
}

/// Inspects the first byte, for an address also the name in the TLS handshake, then leaves the pipeline.
final class FirstBytesHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer

    private let target: KnownTarget
    private let open: OpenConnection?
    private var context: ChannelHandlerContext?
    private var timer: Scheduled<Void>?
    /// The place of a tunnel among the exchanges under way.
    private var place: ExchangePlace?
    /// Bytes that wait for the connection to the target.
    private var held: ByteBuffer?
    private var isPassing = false
    private var isInputClosed = false

    init(_ target: KnownTarget, open: OpenConnection?) { (self.target, self.open) = (target, open) }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        let channel = context.channel
        timer = context.eventLoop.scheduleTask(in: .milliseconds(target.service.timeouts.head.milliseconds)) { channel.close(promise: nil) }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        self.context = nil
    }

    func channelInactive(context: ChannelHandlerContext) {
        timer?.cancel()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if isPassing { return context.fireChannelRead(data) }
        var bytes = unwrapInboundIn(data)
        guard held == nil else {
            held?.writeBuffer(&bytes)
            return
        }
        guard let first = bytes.readableBytesView.first else { return }
        do {
            switch first {
            case FirstByteHandler.handshake where target.isDecrypted:
                try HandshakeHandler.begin(
                    on: context.channel, origin: target.https, service: target.service.inside(target.https),
                    isLocalClient: context.channel.isClientLocal, open: open)
                leave(passing: bytes, context: context)
            case FirstByteHandler.handshake where target.isAddress: try readName(bytes, context: context)
            case FirstByteHandler.handshake where target.mayTunnel: pass(bytes, context: context)
            case FirstByteHandler.handshake: context.close(promise: nil)
            default:
                guard target.speaksHTTP, !target.mayBeTunnel || Self.beginsRequest(bytes) else { return pass(bytes, context: context) }
                try target.requests.installHTTP1(on: context.channel, open: open, wire: .plain)
                leave(passing: bytes, context: context)
            }
        } catch {
            context.close(promise: nil)
        }
    }

    /// True for a method, a space and the beginning of a path (RFC 9112 §3).
    private static func beginsRequest(_ bytes: ByteBuffer) -> Bool {
        let view = bytes.readableBytesView
        let method = view.prefix { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0 }
        return !method.isEmpty && view.dropFirst(method.count).starts(with: " /".utf8)
    }

    /// While the target is dialled, further bytes of the client stay in the socket.
    func read(context: ChannelHandlerContext) { if held == nil { context.read() } }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case let event as ChannelEvent where event == .inputClosed:
            isInputClosed = true
            if held == nil, !isPassing { return context.close(promise: nil) }
        case is DrainEvent where !isPassing: return context.close(promise: nil)
        default: break
        }
        context.fireUserInboundEventTriggered(event)
    }

    private func leave(passing bytes: ByteBuffer, context: ChannelHandlerContext) {
        context.fireChannelRead(wrapInboundOut(bytes))
        context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }

    // MARK: tunnels

    private func pass(_ bytes: ByteBuffer, context: ChannelHandlerContext) {
        held = bytes
        timer?.cancel()
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        dial(target.host, context: context).whenComplete { result in
            let handler = me.value
            guard let context = handler.context, let held = handler.held else {
                if case .success(let peer) = result { peer.close(promise: nil) }
                return
            }
            guard case .success(let peer) = result, handler.join(peer, context: context) else { return context.close(promise: nil) }
            handler.held = nil
            // The read that was held back.
            context.read()
            peer.writeAndFlush(held, promise: nil)
            context.pipeline.syncOperations.removeHandler(handler, promise: nil)
        }
    }

    private func dial(_ host: String, context: ChannelHandlerContext) -> EventLoopFuture<any Channel> {
        do throws(Refusal) { place = try open?.place(.tunnel) } catch { return context.eventLoop.makeFailedFuture(error) }
        return target.service.dialer.connect(
            host: host, port: target.port, isLocalClient: context.channel.isClientLocal, client: open?.account?.client,
            on: context.eventLoop)
    }

    private func join(_ peer: any Channel, context: ChannelHandlerContext) -> Bool {
        do {
            try Glue.join(context.channel, with: peer, at: place, idle: target.service.timeouts.tunnel, clientHasEnded: isInputClosed)
            return peer.isActive
        } catch {
            peer.close(promise: nil)
            return false
        }
    }

    // MARK: the name in a handshake

    /// A client that has resolved its target itself still names it in the handshake.
    private func readName(_ bytes: ByteBuffer, context: ChannelHandlerContext) throws {
        isPassing = true
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        let loop = context.eventLoop
        let hello = SNIHandler { result in
            guard let context = me.value.context else { return loop.makeFailedFuture(ChannelError.ioOnClosedChannel) }
            return me.value.follow(result, context: context).flatMapErrorThrowing { error in
                me.value.context?.close(promise: nil)
                throw error
            }
        }
        try context.pipeline.syncOperations.addHandler(ByteToMessageHandler(hello), position: .after(self))
        context.fireChannelRead(wrapInboundOut(bytes))
    }

    /// Decrypts a connection to a name that is to be decrypted; otherwise connects it to a declared name, or to the address.
    private func follow(_ hello: SNIResult, context: ChannelHandlerContext) -> EventLoopFuture<Void> {
        timer?.cancel()
        let name = hello.host
        if let name, target.isDecrypted(name) {
            let origin = OriginAddress(scheme: .https, host: name, port: target.port)
            let service = target.service.inside(origin)
            let started = HandshakeHandler.begin(after: hello, on: context.channel, origin: origin, service: service, open: open)
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
            return started
        }
        let origin = name.map { OriginAddress(scheme: .https, host: $0, port: target.port) }
        let isDeclared = origin.map { target.service.engine.upstream(for: $0) != nil } ?? false
        guard isDeclared || target.mayTunnel else { return context.eventLoop.makeFailedFuture(ChannelError.connectPending) }
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        return dial(isDeclared ? name ?? target.host : target.host, context: context).flatMapThrowing { peer in
            let handler = me.value
            guard let context = handler.context, handler.join(peer, context: context) else {
                peer.close(promise: nil)
                throw ChannelError.ioOnClosedChannel
            }
            context.pipeline.syncOperations.removeHandler(handler, promise: nil)
        }
    }
}

/// A client's connection to another machine that arrives here (ip(7); docs/guide/clients.md#transparent).
enum RedirectedConnection {
    /// The option of netfilter for both families.
    private static let originalDestination: SocketOptionName = 80

    /// Lets a listener accept connections to addresses of other machines, as TPROXY leads them to it. Without the capability `CAP_NET_ADMIN`
    /// nothing changes, and only redirected connections arrive.
    static func admitForeignTargets(on channel: any Channel, host: String) -> EventLoopFuture<Void> {
        guard let options = channel as? any SocketOptionProvider else { return channel.eventLoop.makeSucceededVoidFuture() }
        let isIPv6 = host.contains(":")
        return options.unsafeSetSocketOption(
            level: SocketOptionLevel(isIPv6 ? IPPROTO_IPV6 : IPPROTO_IP), name: isIPv6 ? IPV6_TRANSPARENT : IP_TRANSPARENT, value: CInt(1)
        ).recover { _ in }
    }

    /// True if the client is on this machine, whatever address it has.
    static func isOfThisMachine(_ channel: any Channel) -> Bool {
        // What the kernel redirects to a loopback address comes from this machine.
        if !isForeign(channel) { return channel.localAddress.flatMap { IPAddress($0) }?.meansLoopback == true }
        guard let peer = channel.remoteAddress.flatMap({ IPAddress($0) }) else { return false }
        let devices = (try? System.enumerateDevices()) ?? []
        return devices.contains { $0.address.flatMap { IPAddress($0) } == peer }
    }

    /// Installs the handlers for the address that the client wanted. Connections that were not redirected are closed.
    static func begin(on channel: any Channel, service: ConnectionService, open: OpenConnection?) -> EventLoopFuture<Void> {
        let opened = NIOLoopBound(open, eventLoop: channel.eventLoop)
        return wanted(by: channel).flatMapThrowing { address in
            guard let address, let port = address.port, port > 0, let host = IPAddress(address)?.description else {
                return channel.close(promise: nil)
            }
            try enter(KnownTarget(host: host, port: port, service: service), on: channel, open: opened.value)
        }.flatMapErrorThrowing { _ in channel.close(promise: nil) }
    }

    private static func enter(_ target: KnownTarget, on channel: any Channel, open: OpenConnection?) throws {
        // A tunnel is opened by the first bytes too, so that a client that sends nothing causes no connection.
        _ = try target.course()
        try channel.pipeline.syncOperations.addHandler(FirstBytesHandler(target, open: open))
    }

    /// True if TPROXY led the connection here: its port is not the listener's.
    private static func isForeign(_ channel: any Channel) -> Bool {
        channel.localAddress?.port != channel.parent?.localAddress?.port
    }

    /// The address that the client wanted; nil if it wanted this listener.
    private static func wanted(by channel: any Channel) -> EventLoopFuture<SocketAddress?> {
        let own = channel.localAddress
        if isForeign(channel) { return channel.eventLoop.makeSucceededFuture(own) }
        guard let options = channel as? any SocketOptionProvider, let own else { return channel.eventLoop.makeSucceededFuture(nil) }
        let found: EventLoopFuture<SocketAddress> =
            if case .v6 = own {
                options.unsafeGetSocketOption(level: SocketOptionLevel(IPPROTO_IPV6), name: originalDestination)
                    .map { (address: sockaddr_in6) in SocketAddress(address) }
            } else {
                options.unsafeGetSocketOption(level: SocketOptionLevel(IPPROTO_IP), name: originalDestination)
                    .map { (address: sockaddr_in) in SocketAddress(address) }
            }
        return found.map { $0 == own ? nil : $0 }
    }
}
