// One answered request as an operator reads it: what came, how it was answered, and why (docs/reference/admin-api.md#requests).
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

    /// Fields whose values are URLs, redacted as those of requests.
    private static let references: Set<HTTPField.Name> = [.location, .contentLocation, .referer]

    private static func shown(_ fields: HTTPFields) -> HTTPFields {
        var shown = HTTPFields()
        for var field in fields where !SecretFields.contains(field.name) && !SecretParameters.contains(field.name.canonicalName) {
            if references.contains(field.name) { field.value = SecretParameters.redacted(url: field.value) }
            shown.append(field)
        }
        return shown
    }
}

extension ExchangeRecord {
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
