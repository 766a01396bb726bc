// Requests sent by curl, a widely used client.
package import RockpoolCore

/// The result of one curl run.
package struct Curl: Sendable {
    /// Every response head in order: the interim responses, then the final one.
    package let heads: [MessageHead]
    package let body: [UInt8]
    /// curl's own exit status, 0 when a response was received.
    package let exit: Int32

    /// Status code of the final response; 0 when there was none.
    package var status: Int { heads.last?.status ?? 0 }
    package var text: String { String(decoding: body, as: UTF8.self) }
    /// The body as JSON; nil when the body is not JSON.
    package var json: JSONValue? { try? JSONValue.parse(body) }
    /// Returns a field of the final response.
    package subscript(name: String) -> String? { heads.last?[name] }

    /// Sends one request.
    ///
    /// - Parameters:
    ///   - proxy: `host:port`, given to curl as `http_proxy`.
    ///   - fields: whole lines, `Name: value`.
    ///   - options: additional curl options.
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
        // With `--head`, curl writes the head to the body file again.
        let content = method == "HEAD" ? [] : try? Files.bytes(of: scratch.path + "/body")
        return Curl(heads: heads, body: content ?? [], exit: command.status)
    }
}
