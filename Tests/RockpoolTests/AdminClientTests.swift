// The client of the admin socket against a real socket, and its failures (docs/reference/cli.md#calling).
import Foundation
import RockpoolCore
import Testing

@testable import rockpool

@Suite struct AdminClientTests {
    @Test func `A call carries method, target, token and body; the reply comes back`() async throws {
        let request = try await SocketServer.with(answers: ["HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n{\"\"}"]) { server in
            try Data("secret\n".utf8).write(to: server.directory.appendingPathComponent("admin-token"))
            let call = AdminCall(method: "PUT", path: "/v1/x", query: ["url": "a&b=c /ü"], body: .map([.init("n", .int(1))]))
            let reply = try await AdminClient(stateDirectory: server.directory.path).send(call)
            #expect(reply == AdminReply(status: 200, body: Data("{\"\"}".utf8)))
            return server.requests().first ?? ""
        }
        #expect(request.hasPrefix("PUT /v1/x?url=a%26b%3Dc%20%2F%C3%BC HTTP/1.1\r\nHost: localhost\r\n"))
        #expect(request.contains("\r\nAuthorization: Bearer secret\r\n"))
        #expect(request.contains("\r\nContent-Type: application/json\r\n"))
        #expect(request.hasSuffix("\r\n\r\n{\n  \"n\": 1\n}"))
    }

    /// Returns the failure of a call that receives `answer`; with nil, no response is ever sent.
    private func failure(answering answer: String?, timeout: TimeSpan = .seconds(30)) async throws -> AdminFailure? {
        try await SocketServer.with(answers: [answer]) { server in
            await #expect(throws: AdminFailure.self) {
                try await AdminClient(stateDirectory: server.directory.path).send(.get("/v1/status"), timeout: timeout)
            }
        }
    }

    @Test func `A problem becomes a refusal with its words`() async throws {
        let problem = "{\"type\": \"urn:rockpool:problem:not-found\", \"title\": \"Not found\", \"detail\": \"no such\\noperation\"}"
        let error = try await failure(answering: "HTTP/1.1 404 Not Found\r\nContent-Length: \(problem.utf8.count)\r\n\r\n\(problem)")
        #expect(error == .refused(status: 404, title: "Not found", detail: "no such\noperation"))
        #expect(error?.description == "Not found: no such operation")
    }

    @Test(arguments: [true, false])
    func `Nobody listening is told apart, with a socket left behind and without`(leavesSocket: Bool) async throws {
        let directory = try SocketServer.abandoned(leavingSocket: leavesSocket)
        defer { try? FileManager.default.removeItem(at: directory) }
        await #expect(throws: AdminFailure.notRunning(socket: directory.path + "/admin.sock")) {
            try await AdminClient(stateDirectory: directory.path).send(.get("/v1/status"))
        }
    }

    /// A group is named only where it may use the socket.
    @Test(arguments: [(0o660, true), (0o600, false)]) func `Whom a socket lets in besides its owner`(mode: Int, isOfGroup: Bool) throws {
        let directory = try SocketServer.abandoned(leavingSocket: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let client = AdminClient(stateDirectory: directory.path)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: client.socket)
        let owner = try FileManager.default.attributesOfItem(atPath: client.socket)[.groupOwnerAccountName] as? String
        #expect(client.groupOfSocket == (isOfGroup ? owner : nil))
        #expect(AdminFailure.denied(socket: "/s", group: nil).description.hasSuffix("; run the command with sudo"))
        #expect(AdminFailure.denied(socket: "/s", group: "pool").description.contains(": sudo adduser $USER pool, then log in anew"))
    }

    /// A full disk is no failure of the call: the message names the file and the reason.
    @Test func `What the disk refuses is said of the file`() async throws {
        let full = try #require(FileHandle(forWritingAtPath: "/dev/full"))
        let failure = try await SocketServer.with(answers: ["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"]) { server in
            await #expect(throws: AdminFailure.self) {
                let transfer = AdminTransfer(sink: { try full.write($0, named: "backup.tar") })
                _ = try await AdminClient(stateDirectory: server.directory.path).send(.post("/v1/backup"), through: transfer)
            }
        }
        #expect(failure == .stopped("backup.tar cannot be written: No space left on device"))
    }

    @Test func `A server that hangs up or is slow is there all the same`() async throws {
        #expect(try await failure(answering: "")?.status == .failed)
        #expect(try await failure(answering: nil, timeout: .milliseconds(50)) == .timedOut)
    }

    @Test func `Pages are put together until there is no next one`() async throws {
        let pages = ["{\"items\": [{\"a\": 1}], \"next\": \"c2\"}", "{\"items\": [{\"a\": 2}], \"next\": null}"]
        let answers = pages.map { "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: \($0.utf8.count)\r\n\r\n\($0)" }
        try await SocketServer.with(answers: answers) { server in
            let client = AdminClient(stateDirectory: server.directory.path)
            let reply = try await client.pages(of: .get("/v1/operations", query: ["state": "all"]))
            struct List: Decodable, Equatable {
                var items: [[String: Int]]
                var next: String?
            }
            #expect(try reply.decoded() == List(items: [["a": 1], ["a": 2]], next: nil))
            let targets = server.requests().map { $0.split(separator: " ")[1] }
            #expect(targets == ["/v1/operations?state=all", "/v1/operations?cursor=c2&state=all"])
        }
    }

    @Test func `Cleanup goes to the stores when nobody answers`() async throws {
        let directory = try SocketServer.abandoned(leavingSocket: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let request = CleanupRequest(aggressive: true, olderThan: .days(7))
        let reply = try await StorageCleanupCommand.perform(request, with: AdminClient(stateDirectory: directory.path)) { asked in
            #expect(asked == request)
            return Data("offline".utf8)
        }
        #expect(reply.body == Data("offline".utf8))
    }

    @Test(arguments: ["HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", ""])
    func `Cleanup never touches the stores of a running server`(answer: String) async throws {
        try await SocketServer.with(answers: [answer]) { server in
            await #expect(throws: AdminFailure.self) {
                _ = try await StorageCleanupCommand.perform(CleanupRequest(), with: AdminClient(stateDirectory: server.directory.path)) {
                    _ in
                    Issue.record("the cleanup opened the stores of a running server")
                    return Data()
                }
            }
        }
    }

    @Test(arguments: [
        ("0190-ab", "0190-ab"), ("../x", "..%2Fx"), ("..", "%2E%2E"), (".", "%2E"), ("a?b#c", "a%3Fb%23c"), ("é\r\n", "%C3%A9%0D%0A"),
    ])
    func `An id stays within its segment`(id: String, segment: String) {
        #expect(AdminCall.segment(id) == segment)
    }
}
