// A record as an entry of an HTTP Archive (HAR 1.2, http://www.softwareishard.com/blog/har-12-spec).
import HTTPTypes

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
