// A format of batches, read once for all operations of a batch (docs/outbox.md#batch-push).
import HTTPTypes

/// A `BatchFormat` whose templates and pointers are parsed.
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
