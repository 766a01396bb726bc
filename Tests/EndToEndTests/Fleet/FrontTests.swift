// The examples of Config/fleet with the real programs, in front of two gateways (docs/guide/fleet.md#one-address-for-clients).
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(3)), .serialized) struct FrontTests {
    private static let examples = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Config/fleet").path
    private static let programs = [("haproxy.cfg", "/usr/sbin/haproxy"), ("nginx.conf", "/usr/sbin/nginx")]
        .filter { FileManager.default.isExecutableFile(atPath: $0.1) }

    @Test(arguments: programs) func eachURLHasAGatewayAndAWriterStays(example: String, program: String) async throws {
        let world = try await SiteWorld.start(2)
        let front = "127.0.0.1:\(FreePort.next())"
        let scratch = try Scratch()
        // The addresses of the example stand for those of this test.
        var text = try Files.text(of: "\(Self.examples)/\(example)").replacing("127.0.0.1:5450", with: front)
        for (index, gateway) in world.gateways.enumerated() {
            let admin = gateway.admin.split(separator: ":").last ?? ""
            text = text.replacing("127.0.0.1:545\(index + 1)", with: gateway.gateway).replacing(
                "port 547\(index + 1)", with: "port \(admin)")
        }
        let file = try scratch.write(text, to: example)
        let arguments =
            example.hasPrefix("haproxy") ? ["-db", "-f", file] : ["-p", scratch.path, "-c", file, "-g", "daemon off; pid pid;"]
        let running = try await ChildProcess(program, arguments, directory: scratch.path)
        defer { running.signal(SIGKILL) }
        let url = "http://\(front)"
        try await eventually("\(example) answers: \(running.errors)") { try await Curl.send("GET", url + "/up").status == 200 }
        // Two gateways, each with its URLs: the second read of each is a hit.
        var ways: Set<String> = []
        for number in 0..<16 {
            let first = try await Curl.send("GET", "\(url)/a/\(number)"), second = try await Curl.send("GET", "\(url)/a/\(number)")
            #expect(first.status == 200 && second["via"] != nil, "\(first.heads)")
            #expect(second["cache-status"]?.hasSuffix("stored") == false, "\(second.heads)")
            ways.insert(second["via"].map { String($0.split(separator: ",").last ?? "") } ?? "")
        }
        #expect(ways.count >= 2, "\(ways)")
        // A client that has written reads what it wrote, wherever its URL belongs.
        for gateway in world.gateways { try await #expect(gateway.change("PUT", "/v1/network", ["mode": "offline"]).status < 300) }
        let jar = ["-b", scratch.path + "/jar", "-c", scratch.path + "/jar"]
        for number in 0..<6 {
            let path = "/w/\(number)"
            let write = try await Curl.send("PUT", url + path, fields: ["Content-Type: text/plain"], body: "mine", options: jar)
            #expect(write.status == 202, "\(write.heads) \(write.text)")
            let read = try await Curl.send("GET", url + path, options: jar)
            #expect(read.status == 200 && read.text == "mine", "\(path): \(read.heads) \(read.text)")
        }
        let took = try await world.gateways.asyncMap { try await $0.operations().count }
        #expect(took.sorted() == [0, 6], "one gateway has taken all writes of this client: \(took)")
        // One gateway dies: every URL is answered.
        for gateway in world.gateways { try await #expect(gateway.change("PUT", "/v1/network", ["mode": "auto"]).status < 300) }
        try await world.gateways[took[0] == 0 ? 0 : 1].kill()
        try await eventually("every URL is answered again", within: .seconds(20)) {
            for number in 0..<8 where try await Curl.send("GET", "\(url)/b/\(number)", options: jar).status != 200 { return false }
            return true
        }
        running.signal(SIGTERM)
        try await world.stop()
    }
}

extension Sequence {
    /// Maps the elements one after the other.
    fileprivate func asyncMap<T>(_ body: (Element) async throws -> T) async rethrows -> [T] {
        var results: [T] = []
        for element in self { results.append(try await body(element)) }
        return results
    }
}
