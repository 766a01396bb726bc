// Operations for other tools: as a curl command that can be pasted into any POSIX shell (docs/outbox.md#export; curl(1)), and as an entry
// of an HTTP Archive.
import HTTPTypes

/// Writes curl commands.
package enum CurlCommand {
    /// The longest body passed as an argument; longer bodies are piped: one argument is limited to 128 KiB on Linux (MAX_ARG_STRLEN).
    private static let longestWord = Int.kib(64)

    /// Returns a shell comment with the operation's id and state, the command, and an empty line.
    package static func text(of exported: ExportedOperation) -> String {
        let operation = exported.operation
        let credential = operation.principal == nil ? "" : ", add the credential it was sent with"
        let texts = [Array(exported.request.target.utf8)] + exported.request.fields.map(\.valueBytes)
        let secrets = texts.contains(where: SecretParameters.areHidden) ? ", put back the secrets of its URLs" : ""
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

/// Quotes words for `sh` (POSIX.1-2024, Shell Command Language §2.2.2). The shell expands nothing in a quoted word, and no control
/// character reaches the terminal.
package enum ShellWord {
    /// Writes text in single quotes, and bytes that a terminal may interpret as a `printf` argument. A NUL cannot be in a word and is
    /// dropped.
    package static func quote(_ bytes: some Collection<UInt8>) -> String {
        if let text = String(validating: bytes, as: UTF8.self), isHarmless(text) {
            return "'" + text.escaping(["'": #"'\''"#]) + "'"
        }
        // Command substitution strips trailing line feeds, so they are appended in quotes.
        let end = bytes.reversed().prefix { $0 == 0x0A }.count
        let lines = end > 0 ? "'" + String(repeating: "\n", count: end) + "'" : ""
        return #""$(printf '%b' '\#(bytes.dropLast(end).filter { $0 != 0 }.map(escaped).joined())')""# + lines
    }

    /// Quotes text.
    package static func quote(_ text: String) -> String { quote(Array(text.utf8)) }

    /// True if a terminal displays every character and interprets none. Line feeds are allowed: inside quotes the shell continues the word.
    package static func isHarmless(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { scalar in
            switch scalar.properties.generalCategory {
            case .control: scalar == "\n"
            // Marks that change the writing direction would display another command than the one that is run.
            case .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned: false
            default: true
            }
        }
    }

    private static func escaped(_ byte: UInt8) -> String {
        switch byte {
        case UInt8(ascii: "'"), UInt8(ascii: "\\"), 0..<0x20, 0x7F...: #"\0"# + octal(byte)
        default: String(Unicode.Scalar(byte))
        }
    }

    private static func octal(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 8)
        return String(repeating: "0", count: 3 - digits.utf8.count) + digits
    }
}

/// An operation with its body, as it would be sent, without credentials.
package struct ExportedOperation: Hashable, Sendable {
    /// The operation's row.
    package var operation: QueuedWrite
    /// The request with its idempotency key, without secrets.
    package var request: RequestHead
    /// The whole body.
    package var body: [UInt8]
    /// The start of its last attempt; nil when there was none.
    package var startedAt: Timestamp?
    /// The end of that attempt.
    package var endedAt: Timestamp?

    /// Removes the secrets from `request`.
    package init(_ operation: QueuedWrite, request: RequestHead, body: [UInt8], startedAt: Timestamp? = nil, endedAt: Timestamp? = nil) {
        self.operation = operation
        self.request = request
        self.request.fields = SecretFields.removed(from: request.fields)
        for name in Self.framing { self.request.fields[name] = nil }
        self.body = body
        self.startedAt = startedAt
        self.endedAt = endedAt
    }

    /// Fields that the client replaying the export generates itself.
    static let framing: [HTTPField.Name] = [.contentLength, .transferEncoding, .connection, .expect, .hostField]
}

/// An operation as documents and exports show it (docs/security-model.md#credentials-and-secrets).
extension QueuedWrite {
    /// Returns the operation without the credentials of its request and its answer, and with `REDACTED` for the secrets of URLs there.
    /// - Parameter withSecrets: true for the URLs as they are.
    package func shown(withSecrets: Bool = false) -> QueuedWrite {
        var shown = self
        if !withSecrets { shown.request.target = SecretParameters.redacted(url: request.target) }
        shown.request.fields = SecretFields.shown(request.fields, withSecrets: withSecrets)
        if let result { shown.result?.head.fields = SecretFields.shown(result.head.fields, withSecrets: withSecrets) }
        return shown
    }
}

// MARK: - HTTP Archive

/// Writes HAR 1.2 incrementally: `opening`, entries separated by commas, `closing`.
package enum HAREntry {
    /// Returns the text before the first entry.
    package static func opening(version: String) -> String {
        let creator: JSONValue = ["name": "rockpool", "version": .string(version)]
        return #"{"log":{"version":"1.2","creator":\#(String(decoding: creator.serialized(), as: UTF8.self)),"entries":["#
    }

    /// The text after the last entry.
    package static let closing = "]}}\n"

    /// Returns one operation as an entry. Without an answer the response has status 0, as browsers write it.
    package static func json(of exported: ExportedOperation) -> JSONValue {
        let operation = exported.operation.shown(withSecrets: true)
        let started = exported.startedAt ?? operation.firstSentAt ?? operation.acceptedAt
        let milliseconds = max(0, ((exported.endedAt ?? started) - started).milliseconds)
        return [
            "startedDateTime": .string(RFC3339.format(started)),
            "time": .number(JSONNumber(milliseconds)),
            "request": request(of: exported),
            "response": response(of: operation.result),
            "cache": [:],
            "timings": ["send": 0, "wait": .number(JSONNumber(milliseconds)), "receive": 0],
            "comment": .string("operation \(operation.id), \(operation.state.rawValue)"),
            "_operation": ["id": .string(operation.id), "state": .string(operation.state.rawValue)],
        ]
    }

    private static func request(of exported: ExportedOperation) -> JSONValue {
        let head = exported.request
        var request: JSONValue = [
            "method": .string(head.method.rawValue), "url": .string(head.url), "httpVersion": "HTTP/1.1", "cookies": [],
            "headers": headers(of: head.fields), "queryString": query(of: head.target), "headersSize": -1,
            "bodySize": .number(JSONNumber(Int64(exported.body.count))),
        ]
        guard !exported.body.isEmpty else { return request }
        let text = String(validating: exported.body, as: UTF8.self)
        var data: JSONValue = ["mimeType": .string(head.fields[.contentType] ?? ""), "text": .string(text ?? Base64.encode(exported.body))]
        // HAR defines no encoding member for requests; names that begin with `_` are custom members.
        if text == nil { data["_encoding"] = "base64" }
        request["postData"] = data
        return request
    }

    private static func response(of result: OperationResult?) -> JSONValue {
        let fields = result?.head.fields ?? [:]
        let body = result?.body ?? []
        let text = String(validating: body, as: UTF8.self)
        var content: JSONValue = [
            "size": .number(JSONNumber(Int64(body.count))), "mimeType": .string(fields[.contentType] ?? ""),
            "text": .string(text ?? Base64.encode(body)),
        ]
        if text == nil { content["encoding"] = "base64" }
        return [
            "status": .number(JSONNumber(Int64(result?.head.status ?? 0))), "statusText": "",
            "httpVersion": result == nil ? "" : "HTTP/1.1", "cookies": [], "headers": headers(of: fields), "content": content,
            "redirectURL": .string(fields[.location] ?? ""), "headersSize": -1,
            "bodySize": result == nil ? -1 : .number(JSONNumber(Int64(body.count))),
        ]
    }

    static func headers(of fields: HTTPFields) -> JSONValue {
        .array(fields.map { ["name": .string($0.name.rawName), "value": .string($0.value)] })
    }

    /// Returns the query's parameters undecoded, because only the upstream knows their encoding.
    static func query(of target: String) -> JSONValue {
        guard let mark = target.firstIndex(of: "?") else { return [] }
        return .array(
            target[target.index(after: mark)...].split(separator: "&").map { part in
                let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                return ["name": .string(String(pair[0])), "value": .string(pair.count > 1 ? String(pair[1]) : "")]
            })
    }
}

/// A record as an entry of an HTTP Archive (HAR 1.2, http://www.softwareishard.com/blog/har-12-spec).
extension ExchangeRecord {
    /// The entry; bodies are not kept, so that their texts are missing. Members that begin with `_` are Rockpool's own.
    package var har: JSONValue {
        [
            "startedDateTime": .string(RFC3339.format(at)),
            "time": .milliseconds(endAfter),
            "request": [
                "method": .string(method), "url": .string(url), "httpVersion": "HTTP/1.1", "cookies": [],
                "headers": HAREntry.headers(of: requestFields), "queryString": HAREntry.query(of: url), "headersSize": -1, "bodySize": -1,
            ],
            "response": [
                "status": .number(JSONNumber(Int64(status))), "statusText": "", "httpVersion": "HTTP/1.1", "cookies": [],
                "headers": HAREntry.headers(of: responseFields),
                "content": [
                    "size": .number(JSONNumber(bytes)), "mimeType": .string(responseFields[.contentType] ?? ""),
                ],
                "redirectURL": .string(responseFields[.location] ?? ""), "headersSize": -1, "bodySize": .number(JSONNumber(bytes)),
            ],
            "cache": [:],
            "timings": harTimings,
            "comment": .string(why.isEmpty ? verdict : "\(verdict): \(why)"),
            "_rockpool": [
                "id": .string(id), "verdict": .string(verdict), "cacheStatus": .optional(cacheStatus), "upstream": .optional(upstream),
                "operation": .optional(operation), "represents": .number(JSONNumber(Int64(represents))),
                "steps": .array(steps.map(\.json)),
            ],
        ]
    }

    /// Milliseconds by phase, which add up to `time`; -1 for a phase that the exchange did not have. `ssl` is part of `connect`.
    private var harTimings: JSONValue {
        guard let timings else {
            return [
                "blocked": -1, "dns": -1, "connect": -1, "ssl": -1, "send": 0, "wait": .milliseconds(min(headAfter, endAfter)),
                "receive": .milliseconds(max(0, endAfter - headAfter)),
            ]
        }
        let before = timings.queue + timings.dns + timings.connect + timings.tls
        let (queue, dns, connect) =
            before <= endAfter ? (timings.queue, timings.dns, timings.connect + timings.tls) : (0, 0, 0)
        let rest = endAfter - (before <= endAfter ? before : 0)
        let receive = max(0, min(rest, endAfter - headAfter))
        return [
            "blocked": .milliseconds(queue), "dns": .milliseconds(dns), "connect": .milliseconds(connect),
            "ssl": timings.tls > 0 && connect > 0 ? .milliseconds(timings.tls) : -1, "send": 0, "wait": .milliseconds(rest - receive),
            "receive": .milliseconds(receive),
        ]
    }
}

extension JSONValue {
    fileprivate static func milliseconds(_ microseconds: Int64) -> JSONValue {
        JSONNumber(literal: "\(Double(microseconds) / 1000)").map { .number($0) } ?? .null
    }
}
