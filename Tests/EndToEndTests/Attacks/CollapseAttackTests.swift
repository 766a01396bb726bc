// Attacks on coalesced requests: responses that a follower must not receive from the leader's fetch (RFC 9111 §4;
// docs/security-model.md#collapsing).
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@Suite(.serialized) struct CollapseAttackTests {
    /// Sends three requests at once; the first answer starts with `leader` and is held until all three have been sent.
    private func race(
        _ policy: String, leader: String, then rest: @escaping @Sendable (Int) -> String, fields: [[String]] = [[], [], []]
    ) async throws -> (replies: [Reply], asked: Int) {
        let asked = Mutex(0)
        let gate = Gate()
        let origin = try await RawServer.start { connection in
            while true {
                let head = try await connection.read(through: "\r\n\r\n", within: .seconds(60))
                guard head.hasPrefix("GET /a") else {
                    try await connection.send("HTTP/1.1 204 No Content\r\n\r\n")
                    continue
                }
                let number = asked.withLock { asked in
                    asked += 1
                    return asked
                }
                if number == 1 { await gate.opened() }
                let text = number == 1 ? leader : rest(number)
                if text.isEmpty { return }
                try await connection.send(text)
            }
        }
        let server = try await ServerProcess.start(ServerSettings(upstream: origin.port, ["policy": .string(policy)]))
        let first = try await ask(server.gateway, fields[0])
        try await eventually("the first request at the origin") { asked.withLock { $0 } == 1 }
        let connections = [first, try await ask(server.gateway, fields[1]), try await ask(server.gateway, fields[2])]
        gate.open()
        var replies: [Reply] = []
        for connection in connections {
            let text = try await connection.readToEnd(within: .seconds(30))
            let end = text.firstRange(of: "\r\n\r\n")?.upperBound ?? text.endIndex
            replies.append(Reply(head: MessageHead(text[..<end]), text: String(text[end...])))
        }
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await origin.stop()
        return (replies, asked.withLock { $0 })
    }

    private struct Reply {
        let head: MessageHead
        let text: String
    }

    /// Returns a connection on which a request has been sent.
    private func ask(_ gateway: String, _ fields: [String]) async throws -> RawConnection {
        let connection = try await RawConnection.open(gateway)
        let lines = ["GET /a HTTP/1.1", "Host: localhost", "Connection: close"] + fields + ["", ""]
        try await connection.send(lines.joined(separator: "\r\n"))
        return connection
    }

    private static func message(_ body: String, _ fields: String...) -> String {
        (["HTTP/1.1 200 OK"] + fields + ["Content-Length: \(body.utf8.count)", "", body]).joined(separator: "\r\n")
    }

    @Test(arguments: AttackedServer.policies) func aLeaderThatDiesLeavesNobodyWaiting(_ policy: String) async throws {
        let (replies, _) = try await race(policy, leader: "") { _ in Self.message("ok", "Cache-Control: max-age=600") }
        for reply in replies { #expect(reply.text == "ok" || reply.head.status >= 502, "\(reply.head.status) \(reply.text)") }
    }

    @Test(
        arguments: ["Cache-Control: private, max-age=600", "Cache-Control: no-store", "Cache-Control: max-age=600\r\nSet-Cookie: sid=A"],
        AttackedServer.policies)
    func whatIsOneClientsOwnIsNotShared(_ fields: String, _ policy: String) async throws {
        let (replies, asked) = try await race(policy, leader: Self.message("SECRET-1", fields)) { Self.message("SECRET-\($0)", fields) }
        #expect(asked == 3 && Set(replies.map(\.text)).count == 3, "\(replies.map(\.text))")
        #expect(Set(replies.compactMap { $0.head["set-cookie"] }).count <= 1)
    }

    @Test(arguments: AttackedServer.policies) func aVariantIsSharedWithItsOwnOnly(_ policy: String) async throws {
        let languages = [["Accept-Language: de"], ["Accept-Language: en"], ["Accept-Language: fr"]]
        let (replies, asked) = try await race(
            policy, leader: Self.message("de", "Cache-Control: max-age=600", "Vary: Accept-Language"),
            then: { Self.message("other-\($0)", "Cache-Control: max-age=600", "Vary: Accept-Language") }, fields: languages)
        #expect(asked == 3 && replies[0].text == "de" && replies[1].text != "de" && replies[2].text != "de")
    }

    @Test(arguments: AttackedServer.policies) func credentialsAreNotCollapsed(_ policy: String) async throws {
        let users = [["Authorization: Bearer A"], ["Authorization: Bearer B"], []]
        let (replies, asked) = try await race(
            policy, leader: Self.message("SECRET-A", "Cache-Control: max-age=600"),
            then: { Self.message("other-\($0)", "Cache-Control: max-age=600") }, fields: users)
        #expect(asked == 3 && replies[0].text == "SECRET-A" && !replies[1].text.contains("SECRET") && !replies[2].text.contains("SECRET"))
    }
}
