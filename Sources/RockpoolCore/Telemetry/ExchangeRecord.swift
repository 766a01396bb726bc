// One answered request as an operator reads it: what came, how it was answered, and why (docs/reference/admin-api.md#requests); in full,
// and as a line of the access log.
package import HTTPTypes

/// The record of an exchange, or of a queued write that has ended or needs a person. Contains no body and no secret.
package struct ExchangeRecord: Hashable, Sendable {
    /// One step of the pipeline.
    package struct Step: Hashable, Sendable {
        /// `routed`, `looked`, `decided`, `fetched`, `failed`, `stored`, `notStored`, `enqueued` or `refused`.
        package var name: String
        package var detail: String
        /// Microseconds since the request.
        package var after: Int64

        package init(_ name: String, _ detail: String, after: Int64) { (self.name, self.detail, self.after) = (name, detail, after) }
    }

    package var id: String
    package var at: Timestamp
    /// The name of the client's principal; nil without a credential.
    package var client: String?
    package var method: String
    /// Without secrets (`SecretParameters`).
    package let url: String
    /// 0 if the upstream has not answered a queued write.
    package var status: Int
    /// A verdict of the trace, or the state of a queued write.
    package var verdict: String
    package var upstream: String?
    package var category: String?
    /// Rockpool's member of `Cache-Status`.
    package var cacheStatus: String?
    /// The reason for the verdict in words.
    package var why = ""
    /// The command that shows or does more; nil if there is nothing to do.
    package var next: String?
    /// The id of the queued write.
    package var operation: String?
    /// The name of an error by RFC 9209, or `client_left`.
    package var error: String?
    /// Bytes of the reply's body that were sent.
    package var bytes: Int64 = 0
    /// Microseconds until the head of the reply was ready.
    package var headAfter: Int64 = 0
    /// Microseconds until the end of the reply.
    package var endAfter: Int64 = 0
    package var steps: [Step] = []
    /// The phases of the transfer from the upstream; nil if nothing was transferred for this exchange.
    package var timings: TransferTimings?
    /// The number of exchanges that this record stands for: 1, or more where records are sampled.
    package var represents = 1
    package let requestFields: HTTPFields
    package let responseFields: HTTPFields

    /// - Parameters:
    ///   - url: may contain secrets; the record does not.
    ///   - requestFields: likewise.
    ///   - responseFields: likewise.
    package init(
        id: String, at: Timestamp, method: String, url: String, status: Int, verdict: String, requestFields: HTTPFields = [:],
        responseFields: HTTPFields = [:]
    ) {
        self.id = id
        self.at = at
        self.method = method
        self.url = SecretParameters.redacted(url: url)
        self.status = status
        self.verdict = verdict
        self.requestFields = Self.shown(requestFields)
        self.responseFields = Self.shown(responseFields)
    }

    private static func shown(_ fields: HTTPFields) -> HTTPFields {
        SecretFields.shown(HTTPFields(fields.filter { !SecretParameters.contains($0.name.canonicalName) }))
    }

    /// The document of a list.
    package var json: JSONValue {
        [
            "id": .string(id), "at": .string(RFC3339.format(at)), "client": .optional(client), "method": .string(method),
            "url": .string(url), "status": .number(JSONNumber(Int64(status))), "verdict": .string(verdict),
            "upstream": .optional(upstream), "category": .optional(category), "cacheStatus": .optional(cacheStatus),
            "why": .string(why), "next": .optional(next), "operation": .optional(operation), "error": .optional(error),
            "bytes": .number(JSONNumber(bytes)), "headSeconds": .seconds(headAfter), "seconds": .seconds(endAfter),
            "timings": timings?.json ?? .null, "steps": .array(steps.map(\.json)),
            "represents": .number(JSONNumber(Int64(represents))),
        ]
    }

    /// The document of one record, with fields and the request as a command.
    package var detailedJSON: JSONValue {
        var document = json
        document["requestHeaders"] = Self.headers(requestFields)
        document["responseHeaders"] = Self.headers(responseFields)
        document["curl"] = .optional(curl)
        document["explain"] = .optional(["GET", "HEAD"].contains(method) ? "rockpool cache explain \(ShellWord.quote(url))" : nil)
        return document
    }

    private static func headers(_ fields: HTTPFields) -> JSONValue {
        .array(fields.map { ["name": .string($0.name.rawName), "value": .string($0.value)] })
    }

    /// The request as a curl command, after a comment about what was left out: the body and secrets, which are not kept. Nil for a method
    /// that cannot be sent so.
    package var curl: String? {
        guard let method = HTTPRequest.Method(method), var head = try? RequestHead(method: method, url: url, fields: requestFields) else {
            return nil
        }
        let hasBody = (head.fields[.contentLength] ?? "0") != "0"
        for name in ExportedOperation.framing { head.fields[name] = nil }
        let missing = [
            client == nil ? nil : "add the credential it was sent with",
            url.contains("=REDACTED") ? "put back the secrets of its URL" : nil,
            hasBody ? "put its body into the file BODY" : nil,
        ].compactMap(\.self)
        let comment = missing.isEmpty ? "" : "# " + missing.joined(separator: ", ") + "\n"
        return comment + CurlCommand.command(for: head, body: [], file: hasBody ? "BODY" : nil)
    }
}

extension ExchangeRecord.Step {
    package var json: JSONValue { ["step": .string(name), "detail": .string(detail), "seconds": .seconds(after)] }
}

/// Durations in microseconds, one after the other (curl_easy_getinfo(3)). A reused connection takes no time for its name, its opening and
/// its handshake.
package struct TransferTimings: Hashable, Sendable {
    /// Until libcurl began: for a place among the connections.
    package var queue: Int64 = 0
    /// The resolution of the host's name.
    package var dns: Int64 = 0
    /// The opening of the connection.
    package var connect: Int64 = 0
    /// The handshake of TLS.
    package var tls: Int64 = 0
    /// From the ready connection to the first byte of the response.
    package var firstByte: Int64 = 0
    /// From the first byte to the end of the body; nil while it arrives.
    package var transfer: Int64?

    package init() {}

    /// Seconds by phase, as the admin API shows them.
    package var json: JSONValue {
        [
            "queue": .seconds(queue), "dns": .seconds(dns), "connect": .seconds(connect), "tls": .seconds(tls),
            "firstByte": .seconds(firstByte), "transfer": transfer.map { .seconds($0) } ?? .null,
        ]
    }
}

extension JSONValue {
    /// Returns a number of seconds from microseconds.
    static func seconds(_ microseconds: Int64) -> JSONValue {
        JSONNumber(literal: "\(Double(microseconds) / 1_000_000)").map { .number($0) } ?? .null
    }
}

/// A tunnel that has ended, or that could not be opened.
package struct TunnelRecord: Hashable, Sendable {
    /// Why it is not decrypted, by what the configuration says of its host.
    package enum Reason: Hashable, Sendable {
        /// No upstream is declared for the host.
        case undeclared
        /// The upstream of this name is not to be decrypted.
        case declared(String)
    }

    package var host: String
    package var port: Int
    package var reason: Reason
    /// Bytes of the client, and of the host.
    package var sent: Int64 = 0
    package var received: Int64 = 0
    package var took: Duration = .zero
    /// Why it could not be opened, as its client was told; nil for a tunnel that was open.
    package var failure: (status: Int, detail: String)? {
        get { failed.map { ($0.status, $0.detail) } }
        set { failed = newValue.map { Failure(status: $0.status, detail: $0.detail) } }
    }

    private struct Failure: Hashable, Sendable {
        let status: Int
        let detail: String
    }

    private var failed: Failure?

    package init(host: String, port: Int, reason: Reason) { (self.host, self.port, self.reason) = (host, port, reason) }

    /// The verdict in lists: `tunnel`, `refused` or `failed`.
    package var verdict: String {
        guard let failed else { return Self.verdict }
        return failed.status < 500 ? "refused" : "failed"
    }

    package static let verdict = "tunnel"

    package var why: String {
        if let failed { return failed.detail }
        return "\(sent.counted("byte")) sent, \(received) received; not decrypted, so nothing of it was cached or queued"
    }

    /// What makes its requests visible and kept.
    package var next: String? {
        switch reason {
        case .undeclared where failed != nil: nil
        case .undeclared: "rockpool add https://\(host)\(port == 443 ? "" : ":\(port)")"
        case .declared(let name): failed == nil ? "use the gateway of \(name), or set intercept: true for it" : nil
        }
    }
}

/// Selects records; every criterion that is set must hold.
package struct ExchangeFilter: Hashable, Sendable {
    /// A status, or a class of statuses such as `5xx`.
    package struct StatusPattern: Hashable, Sendable {
        package let range: ClosedRange<Int>

        /// Nil for a text that is neither.
        package init?(_ text: some StringProtocol) {
            let digits = Array(text.lowercased().utf8)
            guard digits.count == 3, let first = digits.first, (0x30...0x39).contains(first) else { return nil }
            if digits[1] == UInt8(ascii: "x"), digits[2] == UInt8(ascii: "x") {
                let start = Int(first - 0x30) * 100
                range = start...start + 99
            } else {
                guard let status = Int(text) else { return nil }
                range = status...status
            }
        }
    }

    /// Names of upstreams; empty: all.
    package var upstreams: Set<String> = []
    /// Methods in upper case; empty: all.
    package var methods: Set<String> = []
    package var statuses: [StatusPattern] = []
    package var verdicts: Set<String> = []
    /// A text that the URL contains, upper and lower case alike.
    package var text: String?
    /// The earliest time.
    package var since: Timestamp?

    package init() {}

    package func matches(_ record: ExchangeRecord) -> Bool {
        if let since, record.at < since { return false }
        if !upstreams.isEmpty, !upstreams.contains(record.upstream ?? "") { return false }
        if !methods.isEmpty, !methods.contains(record.method) { return false }
        if !statuses.isEmpty, !statuses.contains(where: { $0.range.contains(record.status) }) { return false }
        if !verdicts.isEmpty, !verdicts.contains(record.verdict) { return false }
        if let text, !record.url.lowercased().contains(text.lowercased()) { return false }
        return true
    }
}

// MARK: - Access log

/// The logged data of one exchange. Field values are never logged; secret parameters of the query are redacted.
package struct AccessLine: Hashable, Sendable {
    package var at: Timestamp
    package var method: String
    package var url: String
    package var status: Int
    /// Bytes of the reply's body that were sent.
    package var bytes: Int64
    /// Time from the request's head to the end of the reply.
    package var seconds: Double
    /// The source of the answer.
    package var verdict: String
    /// The proxy's member of `Cache-Status`.
    package var cacheStatus: String?
    /// The upstream's error, by RFC 9209's name; `client_left` when the client did not receive the whole reply.
    package var error: String?

    package init(
        at: Timestamp, method: String, url: String, status: Int, bytes: Int64, seconds: Double, verdict: String, cacheStatus: String?,
        error: String?
    ) {
        self.at = at
        self.method = method
        self.url = SecretParameters.redacted(url: url)
        self.status = status
        self.bytes = bytes
        self.seconds = seconds
        self.verdict = verdict
        self.cacheStatus = cacheStatus
        self.error = error
    }

    /// Returns the line without a line feed; nil when the log is off.
    package func text(_ format: AccessFormat) -> String? {
        switch format {
        case .off: nil
        case .json: String(decoding: json.serialized(), as: UTF8.self)
        case .common: common
        }
    }

    private var json: JSONValue {
        let microseconds = Int64((seconds * 1_000_000).rounded())
        let duration = JSONNumber(literal: "\(Double(microseconds) / 1_000_000)") ?? JSONNumber(0)
        return [
            "at": .string(RFC3339.format(at)), "method": .string(method), "url": .string(url), "status": .number(JSONNumber(Int64(status))),
            "bytes": .number(JSONNumber(bytes)), "seconds": .number(duration), "verdict": .string(verdict),
            "cacheStatus": .optional(cacheStatus), "error": .optional(error),
        ]
    }

    /// Without the client's address and user, which are not logged: `- - - [06/Nov/1994:08:49:37 +0000] "GET /a HTTP/1.1" 200 5`.
    private var common: String {
        let date = HTTPDate.format(at).split(separator: " ")
        let moment = date.count == 6 ? "\(date[1])/\(date[2])/\(date[3]):\(date[4]) +0000" : "-"
        let line = "\(method) \(url) HTTP/1.1".escaping(["\\": "\\\\", "\"": "\\\""])
        return "- - - [\(moment)] \"\(line)\" \(status) \(bytes)"
    }
}

/// The format of the access log.
package enum AccessFormat: String, CaseIterable, Sendable, Codable { case off, json, common }

/// The format of the log.
package enum LogFormat: String, CaseIterable, Sendable, Codable { case text, json }
