// The server's side of a SOCKS 5 handshake, at the byte level (RFC 1928, RFC 1929).

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
