// The relations of one operation to others: its dependencies, its blocker, its replacement (docs/outbox.md#dependencies).

/// The properties of another operation that are shown to a person.
package struct OperationLink: Hashable, Sendable {
    /// The public id.
    package var id: String
    /// The state.
    package var state: OperationState
    /// The reason for the state.
    package var reason: OperationReason?
    /// The request's method, for identification.
    package var method: String
    /// The request's URL.
    package var url: String

    package init(id: String, state: OperationState, reason: OperationReason? = nil, method: String, url: String) {
        self.id = id
        self.state = state
        self.reason = reason
        self.method = method
        self.url = url
    }

    /// True if a credential of its client releases it.
    package var waitsForCredential: Bool { state == .parked && reason == .auth }

    /// The link as it is listed in documents and problems.
    package var json: JSONValue {
        [
            "id": .string(id), "state": .string(state.rawValue), "reason": .optional(reason?.rawValue), "method": .string(method),
            "url": .string(url),
        ]
    }
}
