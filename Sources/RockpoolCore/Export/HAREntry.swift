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
