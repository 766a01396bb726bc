// Requests sent by curl, the client everybody has.
package import RockpoolCore

/// What curl got.
package struct Curl: Sendable {
    /// Every head in order: interim ones, then the final one.
    package let heads: [MessageHead]
    package let body: [UInt8]
    /// curl's own exit status, 0 when a response came.
    package let exit: Int32

    /// Of the final response; 0 when none came.
    package var status: Int { heads.last?.status ?? 0 }
    package var text: String { String(decoding: body, as: UTF8.self) }
    /// The body as JSON; nil when it is none.
    package var json: JSONValue? { try? JSONValue.parse(body) }
    /// A field of the final response.
    package subscript(name: String) -> String? { heads.last?[name] }

    /// Sends one request.
    ///
    /// - Parameters:
    ///   - proxy: `host:port`, given to curl as `http_proxy`.
    ///   - fields: whole lines, `Name: value`.
    ///   - options: further ones, as curl takes them.
    package static func send(
        _ method: String = "GET", _ url: String, proxy: String? = nil, fields: [String] = [], body: String? = nil,
        options: [String] = [], within limit: Duration = .seconds(30)
    ) async throws -> Curl {
        let scratch = try Scratch()
        var arguments = ["-sS", "--globoff", "--path-as-is", "-D", scratch.path + "/head", "-o", scratch.path + "/body"]
        arguments += method == "HEAD" ? ["--head"] : ["-X", method]
        arguments += fields.flatMap { ["-H", $0] }
        if let body { arguments += ["--data-binary", "@" + (try scratch.write(body, to: "payload"))] }
        let command = try await Command.run(
            "/usr/bin/curl", arguments + options + [url], environment: proxy.map { ["http_proxy": "http://" + $0] } ?? [:], within: limit)
        let head = (try? Files.text(of: scratch.path + "/head")) ?? ""
        let heads = head.replacing("\r\n", with: "\n").split(separator: "\n\n").map { MessageHead($0) }
        // What `--head` writes there is the head again.
        let content = method == "HEAD" ? [] : try? Files.bytes(of: scratch.path + "/body")
        return Curl(heads: heads, body: content ?? [], exit: command.status)
    }
}
