// Operations as entries of an HTTP Archive, for browsers' tools (HAR 1.2, http://www.softwareishard.com/blog/har-12-spec).
import HTTPTypes

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
        let operation = exported.operation
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
        let fields = result.map { SecretFields.removed(from: $0.head.fields) } ?? [:]
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
