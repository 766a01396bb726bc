// An operation as a curl command that can be pasted into any POSIX shell (docs/outbox.md#export; curl(1)).
import HTTPTypes

/// Writes curl commands.
package enum CurlCommand {
    /// The longest body passed as an argument; longer bodies are piped: one argument is limited to 128 KiB on Linux (MAX_ARG_STRLEN).
    private static let longestWord = Int.kib(64)

    /// Returns a shell comment with the operation's id and state, the command, and an empty line.
    package static func text(of exported: ExportedOperation) -> String {
        let operation = exported.operation
        let credential = operation.principal == nil ? "" : ", add the credential it was sent with"
        let secrets = exported.request.target.contains("=REDACTED") ? ", put back the secrets of its URL" : ""
        let command = command(for: exported.request, body: exported.body)
        return "# \(comment(operation.id)) \(operation.state.rawValue)\(credential)\(secrets)\n\(command)\n\n"
    }

    /// Returns the command of a request, in one line.
    /// - Parameter file: the name of a file with the body, for a body that is not known.
    package static func command(for request: RequestHead, body: [UInt8], file: String? = nil) -> String {
        var words = ["curl --globoff --path-as-is --request \(ShellWord.quote(request.method.rawValue))"]
        for field in request.fields {
            let value = field.valueBytes
            let name = Array(field.name.rawName.utf8)
            // An empty value is written with a semicolon: with a colon, curl would remove the field.
            words.append("--header \(ShellWord.quote(value.isEmpty ? name + [0x3B] : name + [0x3A, 0x20] + value))")
        }
        let text = String(validating: body, as: UTF8.self)
        if !body.isEmpty || needsLength(request), request.fields[.contentType] == nil {
            words.append("--header 'Content-Type:'")
        }
        var pipe = ""
        if let file {
            words.append("--data-binary \(ShellWord.quote("@" + file))")
        } else if body.isEmpty {
            if needsLength(request) { words.append("--data-raw ''") }
        } else if let text, ShellWord.isHarmless(text), body.count <= longestWord {
            words.append("--data-raw \(ShellWord.quote(text))")
        } else {
            pipe = "printf %s '\(Base64.encode(body))' | base64 -d | "
            words.append("--data-binary @-")
        }
        return pipe + words.joined(separator: " ") + " --url \(ShellWord.quote(request.url))"
    }

    /// True if a request without a body must send `Content-Length: 0` (RFC 9110 §8.6).
    private static func needsLength(_ request: RequestHead) -> Bool { [.post, .put, .patch].contains(request.method) }

    private static func comment(_ text: String) -> String {
        String(
            text.unicodeScalars.map {
                $0.isASCII && ($0.properties.isAlphabetic || "0123456789-".unicodeScalars.contains($0)) ? Character($0) : "_"
            })
    }
}
