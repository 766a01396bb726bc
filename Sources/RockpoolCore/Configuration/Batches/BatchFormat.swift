// The wire format of batches of one endpoint (docs/reference/configuration.md#sync, `sync.batch`).

/// Templates of a batch request, and pointers into its response.
package struct BatchFormat: Hashable, Sendable {
    /// The whole body, with `{operations}`.
    package var body = #"{"operations":"{operations}"}"#
    /// One operation.
    package var operation =
        #"{"id":"{id}","idempotencyKey":"{idempotencyKey}","method":"{method}","entity":"{target}","#
        + #""ifMatch":"{ifMatch}","ifNoneMatch":"{ifNoneMatch}","contentType":"{contentType}","body":"{body}"}"#
    /// The array of results.
    package var results = "/results"
    /// Within a result: the operation's id, its status, its header fields, and the body of its answer.
    package var id = "/id"
    package var status = "/status"
    package var headers = "/headers"
    package var answer = "/body"

    package init() {}

    /// The names that `operation` may have.
    package static let names: Set<String> = [
        "id", "idempotencyKey", "method", "target", "url", "ifMatch", "ifNoneMatch", "contentType", "body",
    ]

    /// What is wrong with it, by key; empty if it can be used.
    package var faults: [(key: String, fault: String)] {
        var faults: [(key: String, fault: String)] = []
        if JSONTemplate(body)?.names != ["operations"] { faults.append(("body", "is JSON with the string \"{operations}\"")) }
        guard let names = JSONTemplate(operation)?.names else { return faults + [("operation", "is JSON with strings such as \"{id}\"")] }
        if let unknown = names.subtracting(Self.names).min() {
            faults.append(("operation", "{\(unknown)} is none of \(Self.names.sorted().joined(separator: ", "))"))
        }
        if !names.isSuperset(of: ["id", "method"]) || names.isDisjoint(with: ["target", "url"]) {
            faults.append(("operation", "needs {id}, {method} and {target} or {url}"))
        }
        return faults
    }
}
