// The beginning of a connection at each kind of listener, and after a rest.
import NIOCore
import RockpoolCore
import RockpoolEngine

extension ConnectionService {
    /// Installs the first handlers of a connection.
    func begin(on channel: any Channel, role: ListenerRole, open: OpenConnection?) throws {
        let pipeline = channel.pipeline.syncOperations
        switch role {
        case .socks: try pipeline.addHandler(SocksHandler(service: self, open: open))
        case .gateway(let door) where door.listener.isSecure: try HandshakeHandler.beginListener(on: channel, service: self, open: open)
        case .proxy where engine.proxyPasswords != nil: try pipeline.addHandler(EncryptedProxyHandler(service: self, open: open))
        case .gateway, .proxy: try beginPlain(on: channel, open: open)
        case .intercepted, .transparent: try installHTTP1(on: channel, open: open, wire: .plain)
        }
    }

    private func beginPlain(on channel: any Channel, open: OpenConnection?) throws {
        try channel.pipeline.syncOperations.addHandler(PriorKnowledgeHandler(service: self, open: open))
        try installHTTP1(on: channel, open: open, wire: .plain)
    }

    /// True if a connection without TLS may begin with HTTP/2.
    private var takesPriorKnowledge: Bool {
        switch resolution.role {
        case .gateway: true
        case .proxy: engine.proxyPasswords == nil
        case .socks, .transparent, .intercepted: false
        }
    }

    /// The service for the streams of a connection of HTTP/2 without TLS: a request to the proxy names its origin by `:authority` alone
    /// (RFC 9113 §8.3.1).
    var ofStreams: ConnectionService { isProxy ? byHost() : self }
}

extension ConnectionService: RestingService {
    var idleLimit: TimeAmount { .milliseconds(timeouts.idle.milliseconds) }

    func resume(on channel: any Channel, open: OpenConnection, after past: RestingConnections.Past) throws {
        if past.requests == 0, takesPriorKnowledge { return try beginPlain(on: channel, open: open) }
        try installHTTP1(on: channel, open: open, wire: .plain, after: past)
    }
}
