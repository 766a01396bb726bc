// The wire format that sends many writes in one request, and the parser of its response (docs/guide/sync.md;
// docs/reference/configuration.md#sync `sync.push`).
import HTTPTypes

/// The wire form of a batch: `{"operations": […]}` → `{"results": [{"id", "status", "headers", "body"}]}`, or that of a `BatchFormat`.
package enum BatchPush {
    /// The maximum number of operations in one request.
    package static let limit = 100
    /// The maximum body size of one operation in bytes; a larger operation is sent alone.
    package static let bodyLimit: Int64 = .kib(64)

    /// Header fields that do not prevent batching: the member carries them, the batch request has its own, or they have no effect on the
    /// write. An operation with any other field is sent alone.
    private static let carried: Set<String> = [
        "if-match", "if-none-match", "content-type", "idempotency-key", "authorization", "cookie", "x-api-key", "api-key", "x-auth-token",
        "accept", "accept-encoding", "accept-language", "user-agent", "host", "content-length", "origin", "referer", "date", "via",
        "cdn-loop", "rockpool-credential", "rockpool-client", "rockpool-repeat",
        "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-platform", "priority",
    ]

    /// The meaning of a response to a batch.
    package enum Verdict: Hashable, Sendable {
        /// Results by operation id; an operation without a result is treated as if its response had been lost.
        case each([String: Result])
        /// The upstream executed none of the batch: it does not support batches, or rejected this one. The operations are sent one by one.
        case refused(String)
        /// The response applies to every operation: throttled, failed, unauthorized, or a captive portal's page.
        case common
    }

    /// The result of one operation.
    package struct Result: Hashable, Sendable {
        package var head: ResponseHead
        package var body: [UInt8]
    }

    /// Returns an operation as a member of the batch; nil when it must be sent alone: a field is not batchable, the body is not JSON, or the
    /// format has no place for a part of it.
    package static func member(
        _ operation: QueuedWrite, body: [UInt8], format: CompiledBatchFormat = CompiledBatchFormat()
    ) -> JSONValue? {
        let (request, fields) = (operation.request, operation.request.fields)
        guard let template = format.operation, fields.allSatisfy({ carried.contains($0.name.canonicalName) }) else {
            return nil
        }
        var parts: [String: JSONValue] = [:]
        for (name, field) in [("ifMatch", HTTPField.Name.ifMatch), ("ifNoneMatch", .ifNoneMatch), ("contentType", .contentType)] {
            parts[name] = fields[field].map { .string($0) }
        }
        if !body.isEmpty {
            guard let value = try? JSONValue.parse(body) else { return nil }
            parts["body"] = value
        }
        var needed = Set(parts.keys)
        // What is JSON without a type is taken for this.
        if body.isEmpty || fields[.contentType].flatMap({ MediaType.essence(of: $0) }) == "application/json" {
            needed.remove("contentType")
        }
        guard format.names.isSuperset(of: needed) else { return nil }
        parts["id"] = .string(operation.id)
        parts["idempotencyKey"] = .string(operation.idempotencyKey)
        (parts["method"], parts["target"]) = (.string(request.method.rawValue), .string(request.target))
        parts["url"] = .string(request.url)
        return template.filled(with: parts)
    }

    /// Returns the body of the batch request.
    package static func body(of members: [JSONValue], format: CompiledBatchFormat = CompiledBatchFormat()) -> [UInt8] {
        (format.body?.filled(with: ["operations": .array(members)]) ?? .null).serialized()
    }

    /// Classifies the response to a batch.
    static func verdict(_ head: ResponseHead, body: [UInt8], format: CompiledBatchFormat) -> Verdict {
        switch head.status {
        case 401, 407, 408, 419, 421, 425, 429: return .common
        case 400...499, 501, 505: return .refused("the batch was refused: \(head.status)")
        case 200...299 where !MediaType.isPage(head.fields): return .each(format.results(in: body))
        default: return .common
        }
    }

    /// Returns the outcome of one operation of the batch: its attempt's outcome, the beginning of its response body and its disposition, by
    /// the same table as for an operation sent alone.
    package static func disposition(
        of operation: QueuedWrite, after batch: BatchAnswer, context: ReplayContext, now: Timestamp, random: Double
    ) -> (outcome: AttemptOutcome, body: [UInt8], change: Disposition) {
        let judge = { (outcome: AttemptOutcome, body: [UInt8]) in
            (
                outcome, body,
                OperationMachine.disposition(of: operation, after: outcome, body: body, context: context, now: now, random: random)
            )
        }
        guard case .answered(let head) = batch.outcome, let verdict = batch.verdict else { return judge(batch.outcome, []) }
        let unknown = AttemptOutcome.failed(
            TransferFailure(kind: .protocolError, sent: .yes, detail: "the batch's answer does not say what became of it"))
        switch verdict {
        case .each(let results):
            guard let result = results[operation.id] else { return judge(unknown, []) }
            return judge(.answered(result.head), result.body)
        case .refused(let detail):
            return (batch.outcome, [], Disposition(state: .pending, nextAttemptAt: now, countsAsAnswered: false, detail: detail))
        case .common:
            let common = judge(batch.outcome, batch.body)
            // A redirect or an error of the batch as a whole ends no operation, except that 401, 407 and 419 end those without a
            // credential.
            let isOwn = [.pending, .parked, .uncertain].contains(common.2.state) || [401, 407, 419].contains(head.status)
            return isOwn ? common : judge(unknown, [])
        }
    }
}

extension BatchFormat {
    /// The format of the batches that are sent to a path of an upstream.
    package init(of upstream: Upstream, path: String) {
        self = upstream.resources.compactMap(\.sync).first { $0.push == path }?.batch ?? BatchFormat()
    }
}

/// A `BatchFormat` whose templates and pointers are parsed (docs/outbox.md#batch-push).
package struct CompiledBatchFormat: Hashable, Sendable {
    let body: JSONTemplate?
    let operation: JSONTemplate?
    /// The names in `operation`.
    let names: Set<String>
    private let results: JSONPointer?
    private let id: JSONPointer?
    private let status: JSONPointer?
    private let headers: JSONPointer?
    private let answer: JSONPointer?

    package init(_ format: BatchFormat = BatchFormat()) {
        (body, operation) = (JSONTemplate(format.body), JSONTemplate(format.operation))
        names = operation?.names ?? []
        (results, id, status) = (JSONPointer(format.results), JSONPointer(format.id), JSONPointer(format.status))
        (headers, answer) = (JSONPointer(format.headers), JSONPointer(format.answer))
    }

    /// Returns the results in the body of a response, by the ids of the operations.
    func results(in body: [UInt8]) -> [String: BatchPush.Result] {
        let found = (try? JSONValue.parse(body)).flatMap { results?.get(in: $0)?.array } ?? []
        return Dictionary(found.compactMap(result(in:))) { first, _ in first }
    }

    private func result(in value: JSONValue) -> (String, BatchPush.Result)? {
        guard let id = id?.get(in: value)?.identifier, let status = status?.get(in: value)?.identifier.flatMap({ Int($0) }),
            (200...599).contains(status)
        else { return nil }
        var head = ResponseHead(status: status, fields: [.contentType: "application/json"])
        for (name, value) in headers?.get(in: value)?.object ?? JSONObject() {
            guard let name = HTTPField.Name(name), let text = value.identifier, HTTPField.isValidValue(text) else { continue }
            head.fields[name] = text
        }
        return (id, BatchPush.Result(head: head, body: answer?.get(in: value).map { $0.isNull ? [] : $0.serialized() } ?? []))
    }
}

/// What became of the request of a batch, read once for all of its operations.
package struct BatchAnswer: Sendable {
    package let outcome: AttemptOutcome
    /// The body of the response.
    let body: [UInt8]
    /// The meaning of the response; nil without one.
    package let verdict: BatchPush.Verdict?

    package init(_ outcome: AttemptOutcome, body: [UInt8], format: CompiledBatchFormat = CompiledBatchFormat()) {
        (self.outcome, self.body) = (outcome, body)
        if case .answered(let head) = outcome {
            verdict = BatchPush.verdict(head, body: body, format: format)
        } else {
            verdict = nil
        }
    }
}
