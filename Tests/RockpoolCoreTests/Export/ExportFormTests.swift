// Exports: curl commands executed by a real shell, and HAR entries (POSIX shell quoting; HAR 1.2).
import Foundation
import HTTPTypes
import RockpoolCore
import Subprocess
import Testing

@Suite struct ExportFormTests {
    private static let nasty: [[UInt8]] = [
        Array("plain".utf8), [], Array("'; touch /tmp/owned; '".utf8), Array("$(id) `id` ${HOME} !! \\ \"x\" *".utf8),
        // A quote followed by a combining mark is one `Character`, but still a quote for a shell.
        Array("'\u{301}; touch /tmp/owned; '\u{301}".utf8), Array("a\nb\n\n".utf8),
        Array("tab\tesc\u{1B}[2Jbel\u{7}".utf8), Array("\u{202E}evil\u{2066}".utf8), [0xFF, 0xFE, 0x27, 0x5C, 0x25, 0x0A],
        Array("-n %s %b \\c \\0101".utf8),
        Array("@/etc/passwd".utf8), Array("é🪸".utf8), (1...255).map { UInt8($0) }, Array("\r\n".utf8),
    ]

    /// Returns the stdout of a command.
    private func shell(_ script: String) async throws -> [UInt8] {
        try await run(.name("sh"), arguments: ["-c", script], output: .bytes(limit: 1 << 20)).standardOutput
    }

    @Test(arguments: nasty) func aWordComesOutOfTheShellAsItWent(_ bytes: [UInt8]) async throws {
        let word = ShellWord.quote(bytes)
        try await #expect(shell("printf %s \(word)") == bytes)
        #expect(word.unicodeScalars.allSatisfy { $0 == "\n" || $0.properties.generalCategory != .control && $0.value != 0x202E })
    }

    private func exported(_ body: [UInt8], _ method: HTTPRequest.Method = .post, fields: HTTPFields = [:]) -> ExportedOperation {
        var operation = operation(method, state: .pending, fields: fields)
        operation.id = "id; rm -rf $HOME"
        return ExportedOperation(operation, request: operation.request, body: body)
    }

    /// In this script `curl` is a function that prints its arguments and its input.
    @Test(arguments: nasty) func theCommandCarriesTheBody(_ body: [UInt8]) async throws {
        let text = CurlCommand.text(of: exported(body, fields: [.contentType: "a/b"]))
        let script = """
            curl() { for a; do if [ "$take" = 1 ]; then printf %s "$a"; fi; take=0; [ "$a" = --data-raw ] && take=1
            [ "$a" = @- ] && cat; done; }
            \(text)
            """
        try await #expect(shell(script) == body)
        #expect(text.hasPrefix("# id__rm_-rf__HOME pending\n"))
    }

    @Test func headersAreAllThere() throws {
        let fields: HTTPFields = [
            .ifMatch: "\"'1'\"", .userAgent: "", .authorization: "Bearer secret", .contentLength: "3", .cookie: "a=b",
        ]
        let text = CurlCommand.text(of: exported(Array("abc".utf8), fields: fields))
        #expect(text.contains(#"--header 'If-Match: "'\''1'\''"'"#) && text.contains("--header 'User-Agent;'"))
        #expect(text.contains("--header 'Content-Type:'") && text.contains("--url 'https://api.example.com/v1/notes/17?x=1'"))
        #expect(!text.contains("secret") && !text.contains("a=b") && !text.contains("Content-Length"))
        #expect(CurlCommand.text(of: exported([], .delete)).contains("--data") == false)
        #expect(CurlCommand.text(of: exported([], .post)).contains("--data-raw ''"))
        #expect(CurlCommand.text(of: exported(Array(repeating: 0x61, count: 70000))).contains("base64 -d | curl"))
    }

    @Test(arguments: [false, true]) func anArchiveHasEveryMemberItMustHave(_ isAnswered: Bool) throws {
        var one = exported([0xFF, 1], fields: [.contentType: "a/b", .authorization: "Bearer secret"])
        one.startedAt = noon
        one.endedAt = noon + .milliseconds(250)
        if isAnswered {
            one.operation.result = OperationResult(
                head: ResponseHead(status: 422, fields: [.contentType: "text/plain"]), body: Array("no".utf8))
        }
        let text = HAREntry.opening(version: "1") + String(decoding: HAREntry.json(of: one).serialized(), as: UTF8.self) + HAREntry.closing
        let log = try JSONValue.parse(Array(text.utf8))["log"]
        #expect(log?["version"] == "1.2" && log?["creator"]?["name"] == "rockpool")
        let entry = try #require(log?["entries"]?.array?.first)
        #expect(entry["startedDateTime"]?.string.flatMap(RFC3339.parse) == noon && entry["time"] == 250)
        #expect(entry["cache"]?.object != nil && entry["timings"]?.object?.names == ["send", "wait", "receive"])
        let (request, response) = (entry["request"], entry["response"])
        for name in ["method", "url", "httpVersion", "cookies", "headers", "queryString", "headersSize", "bodySize"] {
            #expect(request?[name] != nil, "\(name)")
        }
        #expect(request?["queryString"] == [["name": "x", "value": "1"]])
        #expect(request?["postData"]?["text"] == "/wE=" && request?["postData"]?["_encoding"] == "base64")
        for name in ["status", "statusText", "httpVersion", "cookies", "headers", "content", "redirectURL", "headersSize", "bodySize"] {
            #expect(response?[name] != nil, "\(name)")
        }
        #expect(response?["status"] == (isAnswered ? 422 : 0) && response?["content"]?["text"] == (isAnswered ? "no" : ""))
        #expect(!text.contains("secret"))
    }
}
