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
        case .gateway: try beginGateway(on: channel, open: open)
        case .proxy where engine.proxyPasswords != nil: try pipeline.addHandler(EncryptedProxyHandler(service: self, open: open))
        case .proxy, .intercepted, .transparent: try installHTTP1(on: channel, open: open, wire: .plain)
        }
    }

    private func beginGateway(on channel: any Channel, open: OpenConnection?) throws {
        try channel.pipeline.syncOperations.addHandler(PriorKnowledgeHandler(service: self, open: open))
        try installHTTP1(on: channel, open: open, wire: .plain)
    }

}

extension ConnectionService: RestingService {
    var idleLimit: TimeAmount { .milliseconds(timeouts.idle.milliseconds) }

    func resume(on channel: any Channel, open: OpenConnection, after past: RestingConnections.Past) throws {
        if past.requests == 0, case .gateway = resolution.role { return try beginGateway(on: channel, open: open) }
        try installHTTP1(on: channel, open: open, wire: .plain, after: past)
    }
}
