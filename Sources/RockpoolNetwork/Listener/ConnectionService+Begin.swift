// The beginning of a connection at each kind of listener.
import NIOCore
import RockpoolCore
import RockpoolEngine

extension ConnectionService {
    /// Installs the first handlers of a connection.
    func begin(on channel: any Channel, role: ListenerRole, open: OpenConnection?) throws {
        let pipeline = channel.pipeline.syncOperations
        switch role {
        case .socks: try pipeline.addHandler(SocksHandler(service: self, open: open))
        case .gateway(let gateway) where gateway.isSecure: try HandshakeHandler.beginListener(on: channel, service: self, open: open)
        case .gateway:
            try pipeline.addHandler(PriorKnowledgeHandler(service: self, open: open))
            try installHTTP1(on: channel, open: open, wire: .plain)
        case .proxy where engine.proxyPasswords != nil: try pipeline.addHandler(EncryptedProxyHandler(service: self, open: open))
        case .proxy, .intercepted, .transparent: try installHTTP1(on: channel, open: open, wire: .plain)
        }
    }
}
