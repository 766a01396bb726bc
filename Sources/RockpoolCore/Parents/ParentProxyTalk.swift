// The handshake with a parent proxy: CONNECT (RFC 9110 §9.3.6) or SOCKS 5 (RFC 1928), at the byte level.

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
