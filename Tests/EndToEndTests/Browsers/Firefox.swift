// A real headless Firefox, controlled by Marionette: over TCP, `LENGTH:[type, id, command, parameters]` in each direction.
import Foundation
import Glibc
import RockpoolCore
import RockpoolTesting
import Synchronization

/// One page of a headless Firefox.
final class Firefox: PageWindow {
    private static let path = ["/usr/bin/firefox-esr", "/usr/bin/firefox"].first { FileManager.default.isExecutableFile(atPath: $0) }
    /// True if the browser is installed.
    static var isInstalled: Bool { path != nil }

    private let scratch: Scratch
    private let child: ChildProcess
    private let connection: RawConnection
    private let count = Mutex(Int64(0))

    /// Starts the browser with one empty page. Throws when it is not installed.
    init() async throws {
        guard let path = Self.path else { throw Browser.Refused(description: "no Firefox is installed; `make clients` installs one") }
        scratch = try Scratch()
        let port = FreePort.next()
        let preferences = ["marionette.port": "\(port)", "network.proxy.type": "0", "datareporting.policy.dataSubmissionEnabled": "false"]
        try scratch.write(preferences.map { "user_pref(\"\($0)\", \($1));\n" }.joined(), to: "user.js")
        child = try await ChildProcess(
            path, ["--headless", "--no-remote", "--profile", scratch.path, "--marionette"],
            environment: ["HOME": scratch.path, "MOZ_DISABLE_CONTENT_SANDBOX": "1"])
        connection = try await eventualValue("the port of Firefox", within: .seconds(60)) {
            try? await RawConnection.open("127.0.0.1:\(port)")
        }
        _ = try await message()
        try await call("WebDriver:NewSession", [:])
    }

    deinit { child.signal(SIGKILL) }

    func open(_ address: String) async throws { try await call("WebDriver:Navigate", ["url": .string(address)]) }

    @discardableResult
    func evaluate(_ expression: String) async throws -> JSONValue {
        let script = """
            const done = arguments[arguments.length - 1];
            (async () => { try { done({value: await (\(expression))}) } catch (error) { done({error: String(error)}) } })()
            """
        let answer = try await call("WebDriver:ExecuteAsyncScript", ["script": .string(script), "args": []])
        if let error = answer["value"]?["error"]?.string { throw Browser.Refused(description: "\(expression): \(error)") }
        return answer["value"]?["value"] ?? .null
    }

    func until(_ expression: String, within limit: Duration) async throws {
        try await eventually(expression, within: limit) {
            // A page that is being replaced ends a script.
            (try? await evaluate("Boolean(\(expression))"))?.bool == true
        }
    }

    /// Sends a command and returns its result.
    @discardableResult
    private func call(_ command: String, _ parameters: JSONValue) async throws -> JSONValue {
        let id = count.withLock { count in
            count += 1
            return count
        }
        let bytes = JSONValue.array([0, .number(JSONNumber(id)), .string(command), parameters]).serialized()
        try await connection.send(Array("\(bytes.count):".utf8) + bytes)
        let answer = try await message().array ?? []
        guard answer.count == 4, answer[2] == .null else {
            throw Browser.Refused(description: "\(command): \(answer.dropFirst(2).first ?? .null)")
        }
        return answer[3]
    }

    private func message() async throws -> JSONValue {
        let length = try await connection.read(through: ":", within: .seconds(60)).dropLast()
        guard let length = Int(length) else { throw Browser.Refused(description: "no length: \(length)") }
        return try JSONValue.parse(await connection.read(bytes: length, within: .seconds(60)))
    }
}
