// One access log line per request, as JSON or in the Common Log Format.

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
