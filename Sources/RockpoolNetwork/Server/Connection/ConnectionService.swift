// The dependencies shared by all connections of a listener: the engine, the limits, the tunnel dialer.
import Logging
import NIOCore
import NIOHTTP1
import RockpoolCore
import RockpoolEngine

/// Shared by the connections of one listener.
final class ConnectionService: Sendable {
    let engine: Engine
    let resolution: TargetResolution
    let timeouts: ClientTimeouts
    let limits: ClientLimits
    /// The proxy's name in `Via`, unique per instance.
    let viaName: String
    let dialer: TunnelDialer
    let relays: RelayPools
    /// Certificates for decrypted tunnels.
    let contexts: LeafContexts
    let connections: OpenConnections
    /// Where idle connections are without a channel.
    let resting: RestingConnections
    let logger: Logger

    init(
        engine: Engine, resolution: TargetResolution, timeouts: ClientTimeouts, limits: ClientLimits, viaName: String, dialer: TunnelDialer,
        relays: RelayPools, contexts: LeafContexts, connections: OpenConnections, resting: RestingConnections, logger: Logger
    ) {
        self.engine = engine
        self.resolution = resolution
        self.timeouts = timeouts
        self.limits = limits
        self.viaName = viaName
        self.dialer = dialer
        self.relays = relays
        self.contexts = contexts
        self.connections = connections
        self.resting = resting
        self.logger = logger
    }

    /// True if stored replies may be sent before a request is decoded; not while every exchange is logged, because these are not, nor where
    /// clients need a password.
    var answersAtOnce: Bool { logger.logLevel > .debug && !engine.recordsEveryExchange && passwords == nil }

    /// Returns the service for requests within a decrypted tunnel to `origin`.
    func inside(_ origin: OriginAddress) -> ConnectionService {
        with(TargetResolution(role: .intercepted(origin), ports: resolution.ports, listener: origin.url, ownPorts: resolution.ownPorts))
    }

    /// Returns the service for requests whose origin is named by `Host` alone.
    func byHost() -> ConnectionService {
        with(TargetResolution(role: .transparent, ports: resolution.ports, listener: resolution.listener, ownPorts: resolution.ownPorts))
    }

    private func with(_ resolution: TargetResolution) -> ConnectionService {
        ConnectionService(
            engine: engine, resolution: resolution, timeouts: timeouts, limits: limits, viaName: viaName, dialer: dialer, relays: relays,
            contexts: contexts, connections: connections, resting: resting, logger: logger)
    }

    /// Installs the HTTP/1 handlers on a channel. `wire` is the transport of its bytes; `past` is nil for a connection that has not rested.
    func installHTTP1(
        on channel: any Channel, open: OpenConnection?, wire: ReplyWire, after past: RestingConnections.Past? = nil
    ) throws {
        var decoding = NIOHTTPDecoderLimitConfiguration()
        decoding.maxHeaderFieldSize = Int(clamping: limits.fieldBytes.bytes)
        decoding.maxHeaderListSize = Int(clamping: limits.headBytes.bytes)
        decoding.maxHeaderFieldCount = limits.fields
        let decoder = HTTPRequestDecoder(
            leftOverBytesStrategy: .forwardBytes, informationalResponseStrategy: .drop, limitConfiguration: decoding)
        let connection = ConnectionHandler(service: self, open: open, wire: wire, past: past)
        try channel.pipeline.syncOperations.addHandlers([
            FastPathHandler(connection, on: channel.eventLoop), ByteToMessageHandler(decoder), connection,
        ])
    }
}
