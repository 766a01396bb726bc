// The dependencies shared by all connections of a listener: the engine, the limits, the tunnel dialer.
import Logging
import NIOCore
import NIOHTTP1
import RockpoolCore
import RockpoolEngine

/// Shared by the connections of one listener.
struct ConnectionService: Sendable {
    let engine: Engine
    private(set) var resolution: TargetResolution
    let timeouts: ClientTimeouts
    let limits: ClientLimits
    /// The proxy's name in `Via`, unique per instance.
    let viaName: String
    let dialer: TunnelDialer
    let relays: RelayPools
    /// Certificates for decrypted tunnels.
    let contexts: LeafContexts
    let logger: Logger

    /// True if stored replies may be sent before a request is decoded; not while every exchange is logged, because these are not, nor where
    /// clients need a password.
    var answersAtOnce: Bool { logger.logLevel > .debug && !engine.recordsEveryExchange && passwords == nil }

    /// Returns the service for requests within a decrypted tunnel to `origin`.
    func inside(_ origin: OriginAddress) -> ConnectionService {
        var service = self
        service.resolution = TargetResolution(
            role: .intercepted(origin), ports: resolution.ports, listener: origin.url, ownPorts: resolution.ownPorts)
        return service
    }

    /// Returns the service for requests whose origin is named by `Host` alone.
    func byHost() -> ConnectionService {
        var service = self
        service.resolution = TargetResolution(
            role: .transparent, ports: resolution.ports, listener: resolution.listener, ownPorts: resolution.ownPorts)
        return service
    }

    /// Installs the HTTP/1 handlers on a channel. `wire` is the transport of its bytes.
    func installHTTP1(on channel: any Channel, open: OpenConnection?, wire: ReplyWire) throws {
        var decoding = NIOHTTPDecoderLimitConfiguration()
        decoding.maxHeaderFieldSize = Int(clamping: limits.fieldBytes.bytes)
        decoding.maxHeaderListSize = Int(clamping: limits.headBytes.bytes)
        decoding.maxHeaderFieldCount = limits.fields
        let decoder = HTTPRequestDecoder(
            leftOverBytesStrategy: .forwardBytes, informationalResponseStrategy: .drop, limitConfiguration: decoding)
        let connection = ConnectionHandler(service: self, open: open, wire: wire)
        try channel.pipeline.syncOperations.addHandlers([
            FastPathHandler(connection, on: channel.eventLoop), ByteToMessageHandler(decoder), connection,
        ])
    }
}
