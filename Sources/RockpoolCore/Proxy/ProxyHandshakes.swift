// Handshakes at the byte level: the server's side of SOCKS 5 (RFC 1928, RFC 1929), and CONNECT (RFC 9110 §9.3.6) or SOCKS 5 with a parent
// proxy.
package import HTTPTypes

/// The handshake with a client, until its target is known. Only CONNECT is answered.
package struct SocksTalk: Sendable {
    package enum Action: Hashable, Sendable {
        /// More bytes are needed.
        case more
        case send([UInt8])
        /// The client's name and password, to be answered by `verified`.
        case verify(user: String, password: String)
        /// The client wants a connection; `early` was received after its request.
        case connect(host: String, port: Int, early: [UInt8])
        /// The handshake ends after these bytes.
        case end([UInt8])
    }

    /// The reply to a request (RFC 1928 §6).
    package enum Reply: UInt8, Sendable {
        case succeeded = 0, failed, notAllowed, networkUnreachable, hostUnreachable, refused, expired, commandNotSupported
        case addressNotSupported

        /// The message: the reply with an empty bound address.
        package var bytes: [UInt8] { [5, rawValue, 0, 1, 0, 0, 0, 0, 0, 0] }
    }

    private enum Step { case greeting, password, request, done }

    private let needsPassword: Bool
    private var step = Step.greeting
    private var received: [UInt8] = []

    /// - Parameter needsPassword: True if clients must name a user and a password.
    package init(needsPassword: Bool) { self.needsPassword = needsPassword }

    /// Processes bytes of the client.
    package mutating func receive(_ bytes: some Sequence<UInt8>) -> Action {
        received += bytes
        return proceed()
    }

    /// Keeps bytes of the client that arrive after `Action.verify` and before `verified`.
    package mutating func keep(_ bytes: some Sequence<UInt8>) { received += bytes }

    /// Continues after `Action.send` or `Action.verify` with bytes that have already arrived.
    package mutating func proceed() -> Action {
        switch step {
        case .greeting: readGreeting()
        case .password: readPassword()
        case .request: readRequest()
        case .done: .more
        }
    }

    /// The answer to a name and a password.
    package mutating func verified(_ isRight: Bool) -> Action {
        guard isRight else { return end([1, 1]) }
        step = .request
        return .send([1, 0])
    }

    private mutating func end(_ bytes: [UInt8]) -> Action {
        step = .done
        return .end(bytes)
    }

    private mutating func readGreeting() -> Action {
        guard received.first ?? 5 == 5 else { return end([]) }
        guard received.count >= 2, received.count >= 2 + Int(received[1]) else { return .more }
        let methods = received[2..<(2 + Int(received[1]))]
        let wanted: UInt8 = needsPassword ? 2 : 0
        guard methods.contains(wanted) else { return end([5, 0xFF]) }
        received.removeFirst(2 + methods.count)
        step = needsPassword ? .password : .request
        return .send([5, wanted])
    }

    private mutating func readPassword() -> Action {
        guard received.first ?? 1 == 1 else { return end([1, 1]) }
        guard received.count >= 2 else { return .more }
        let userEnd = 2 + Int(received[1])
        guard received.count > userEnd, received.count >= userEnd + 1 + Int(received[userEnd]) else { return .more }
        let end = userEnd + 1 + Int(received[userEnd])
        let user = String(decoding: received[2..<userEnd], as: UTF8.self)
        let password = String(decoding: received[(userEnd + 1)..<end], as: UTF8.self)
        received.removeFirst(end)
        return .verify(user: user, password: password)
    }

    private mutating func readRequest() -> Action {
        guard received.first ?? 5 == 5 else { return end(Reply.failed.bytes) }
        guard received.count >= 5 else { return .more }
        guard received[1] == 1 else { return end(Reply.commandNotSupported.bytes) }
        let addressLength: Int
        switch received[3] {
        case 1: addressLength = 4
        case 3: addressLength = 1 + Int(received[4])
        case 4: addressLength = 16
        default: return end(Reply.addressNotSupported.bytes)
        }
        let length = 4 + addressLength + 2
        guard received.count >= length else { return .more }
        let address = Array(received[4..<(4 + addressLength)])
        let port = Int(received[length - 2]) << 8 | Int(received[length - 1])
        guard port > 0, let host = Self.host(address, kind: received[3]) else { return end(Reply.addressNotSupported.bytes) }
        let early = Array(received[length...])
        received = []
        step = .done
        return .connect(host: host, port: port, early: early)
    }

    /// The host in canonical form; nil for a name that HTTP would refuse too.
    private static func host(_ address: [UInt8], kind: UInt8) -> String? {
        guard kind == 3 else { return (address.count == 4 ? IPAddress(v4: address) : IPAddress(v6: address))?.description }
        let name = String(decoding: address.dropFirst(), as: UTF8.self)
        let text = name.contains(":") && !name.hasPrefix("[") ? "[\(name)]" : name
        guard let authority = try? Authority.parse(Substring(text)), authority.port == nil else { return nil }
        return authority.host
    }
}

// MARK: - Parent proxies

/// The handshake with a parent proxy until the tunnel is established.
package struct ParentProxyTalk: Sendable {
    package enum Action: Hashable, Sendable {
        /// More bytes are needed.
        case more
        case send([UInt8])
        /// The tunnel is established; these bytes have already been received through it.
        case established(early: [UInt8])
        case failed(String)
    }

    private enum Step { case greeting, head, method, password, reply }

    /// Maximum size of an HTTP proxy's response head, in bytes.
    package static let headLimit = Int.kib(16)

    private let kind: ParentProxy.Kind
    private let host: String
    private let port: Int
    private let credential: ParentCredential?
    private var step = Step.greeting
    private var received: [UInt8] = []

    /// - Parameter host: A name; an address for `socks5`, which does not resolve names.
    package init(_ kind: ParentProxy.Kind, host: String, port: Int, credential: ParentCredential? = nil) {
        self.credential = credential
        self.kind = kind
        self.host = host
        self.port = port
    }

    private var isHTTP: Bool { kind == .http || kind == .https }

    /// The first bytes to send.
    package mutating func begin() -> [UInt8] {
        step = isHTTP ? .head : .method
        // Version 5, one method: no authentication, or a password (RFC 1929).
        guard isHTTP else { return [5, 1, credential == nil ? 0 : 2] }
        let target = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        let proof = credential.map { "Proxy-Authorization: \($0.basic)\r\n" } ?? ""
        return Array("CONNECT \(target) HTTP/1.1\r\nHost: \(target)\r\n\(proof)\r\n".utf8)
    }

    /// Processes bytes received from the proxy.
    package mutating func receive(_ bytes: some Sequence<UInt8>) -> Action {
        received += bytes
        switch step {
        case .greeting: return .failed("the parent proxy spoke first")
        case .head: return readHead()
        case .method: return readMethod()
        case .password: return readPassword()
        case .reply: return readReply()
        }
    }

    private mutating func readHead() -> Action {
        guard let end = received.firstRange(of: [13, 10, 13, 10]) else {
            return received.count > Self.headLimit ? .failed("the parent proxy's answer is too long") : .more
        }
        guard let line = received[..<end.lowerBound].split(separator: 13).first, let status = try? ResponseGate.status(ofLine: line) else {
            return .failed("the parent proxy's answer is not HTTP")
        }
        guard (200...299).contains(status) else { return .failed("the parent proxy answered \(status)") }
        return .established(early: Array(received[end.upperBound...]))
    }

    private mutating func readMethod() -> Action {
        guard received.count >= 2 else { return .more }
        guard received[0] == 5, received[1] == (credential == nil ? 0 : 2) else {
            return .failed(credential == nil ? "the parent proxy takes no client without a password" : "the parent proxy takes no password")
        }
        received.removeFirst(2)
        guard let credential else { return request() }
        step = .password
        let (user, password) = (Array(credential.user.utf8.prefix(255)), Array(credential.password.utf8.prefix(255)))
        return .send([1, UInt8(user.count)] + user + [UInt8(password.count)] + password)
    }

    private mutating func readPassword() -> Action {
        guard received.count >= 2 else { return .more }
        guard received[1] == 0 else { return .failed("the parent proxy refused the password") }
        received.removeFirst(2)
        return request()
    }

    private mutating func request() -> Action {
        step = .reply
        let destination: [UInt8]
        switch IPAddress(host) {
        case let address? where address.family == .v4: destination = [1] + address.octets
        case let address?: destination = [4] + address.octets
        case nil:
            guard host.utf8.count <= 255 else { return .failed("the name is too long for SOCKS") }
            destination = [3, UInt8(host.utf8.count)] + Array(host.utf8)
        }
        return .send([5, 1, 0] + destination + [UInt8(truncatingIfNeeded: port >> 8), UInt8(truncatingIfNeeded: port)])
    }

    private mutating func readReply() -> Action {
        guard received.count >= 5 else { return .more }
        guard received[0] == 5, received[1] == 0 else { return .failed("the parent proxy refused (SOCKS \(received[1]))") }
        let addressLength: Int
        switch received[3] {
        case 1: addressLength = 4
        case 3: addressLength = 1 + Int(received[4])
        case 4: addressLength = 16
        default: return .failed("the parent proxy's answer is not SOCKS 5")
        }
        let length = 4 + addressLength + 2
        guard received.count >= length else { return .more }
        return .established(early: Array(received[length...]))
    }
}

/// `Proxy-Authenticate` of Negotiate and NTLM (RFC 4559 §5; [MS-NTHT] §3.1).
package enum ProxyChallenge {
    /// True if the fields hold a message for the next step, in contrast to the bare name of a scheme.
    package static func continues(_ fields: HTTPFields) -> Bool {
        fields[values: .proxyAuthenticate].contains { value in
            let parts = value.split(separator: " ")
            return parts.count == 2 && ["ntlm", "negotiate"].contains(parts[0].lowercased()) && Base64.decode(String(parts[1])) != nil
        }
    }
}
