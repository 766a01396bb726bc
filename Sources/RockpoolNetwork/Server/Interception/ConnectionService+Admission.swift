// The admission of a request to the proxy by `Proxy-Authorization` (RFC 9110 §11.7, RFC 7617; docs/security-model.md#proxy-passwords).
import HTTPTypes
import NIOCore
import NIOPosix
import RockpoolCore
import RockpoolEngine

extension ConnectionService {
    /// Comparisons of hashes, one at a time: they must not delay files and certificates, which share NIO's threads.
    private static let thread: NIOThreadPool = {
        let thread = NIOThreadPool(numberOfThreads: 1)
        thread.start()
        return thread
    }()

    /// True for the listener of the proxy itself, not for requests in its tunnels.
    var isProxy: Bool { if case .proxy = resolution.role { true } else { false } }

    /// The passwords that requests of this service owe; nil if they owe none.
    var passwords: ProxyPasswords? { isProxy ? engine.proxyPasswords : nil }

    /// True for a name by which other machines may know this one.
    func isThisMachine(_ host: String) -> Bool {
        let machine = LeafContexts.machine.lowercased()
        return OriginAddress.isLoopback(host) || host == machine || host.hasPrefix(machine + ".")
            || engine.configuration.admin.hosts.contains { $0.lowercased() == host }
    }

    /// Judges a request by its fields; they lose nothing, because the field is of this hop only.
    func admission(_ fields: HTTPFields, on channel: any Channel, wire: ReplyWire) -> ProxyAdmission {
        guard let passwords else { return .admitted }
        guard wire != .plain || channel.isFromThisMachine else {
            let detail = "passwords are not taken unencrypted from other machines: use the proxy by https://, and trust its certificate"
            return .refused(engine.problem(for: Refusal(status: 403, problem: "tls-required", detail: detail)))
        }
        guard let given = fields[.proxyAuthorization].flatMap({ NameAndPassword(basic: $0) }) else { return .refused(challenge) }
        let address = channel.addressForAttempts
        switch passwords.standing(of: given, from: address) {
        case .right: return .admitted
        case .limited(let seconds): return .refused(tooMany(seconds))
        case .unproved:
            return .open { await Self.isRight(given, from: address, passwords) ? nil : self.challenge }
        }
    }

    /// Judges the name and password of a SOCKS client, which cannot be encrypted.
    func admits(_ given: NameAndPassword, on channel: any Channel) -> EventLoopFuture<Bool> {
        let loop = channel.eventLoop
        guard let passwords = engine.proxyPasswords, channel.isFromThisMachine else { return loop.makeSucceededFuture(false) }
        let address = channel.addressForAttempts
        switch passwords.standing(of: given, from: address) {
        case .right: return loop.makeSucceededFuture(true)
        case .limited: return loop.makeSucceededFuture(false)
        case .unproved: return Self.thread.runIfActive(eventLoop: loop) { passwords.verify(given, from: address) }
        }
    }

    private static func isRight(_ given: NameAndPassword, from address: String?, _ passwords: ProxyPasswords) async -> Bool {
        (try? await thread.runIfActive { passwords.verify(given, from: address) }) ?? false
    }

    private var challenge: Reply {
        let detail = "send a name and a password of the file in proxy.auth (curl: --proxy-user NAME:PASSWORD)"
        var reply = engine.problem(for: Refusal(status: 407, problem: "proxy-unauthorized", detail: detail))
        reply.head.fields[.proxyAuthenticate] = #"Basic realm="rockpool", charset="UTF-8""#
        return reply
    }

    private func tooMany(_ seconds: Int64) -> Reply {
        let detail = "too many passwords of this client were wrong; a right one is taken again in \(seconds) s"
        var reply = engine.problem(for: Refusal(status: 429, problem: "too-many-attempts", detail: detail))
        reply.head.fields[.retryAfter] = "\(seconds)"
        return reply
    }
}

extension Channel {
    /// True for a client on this machine: by loopback, or by another address of this machine.
    fileprivate var isFromThisMachine: Bool { isClientLocal || remoteAddress?.ipAddress == localAddress?.ipAddress }

    /// Nil for a client on this machine.
    fileprivate var addressForAttempts: String? { isFromThisMachine ? nil : remoteAddress?.ipAddress }
}
