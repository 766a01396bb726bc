// How one operation stands to others: what it needs, what holds it, what it replaces (outbox.md §1.8, §1.9).

/// Another operation, as far as a person must know it.
package struct OperationLink: Hashable, Sendable {
    /// The public id.
    package var id: String
    /// Where it stands.
    package var state: OperationState
    /// Why it stands there.
    package var reason: OperationReason?
    /// The request, to be recognised by.
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

    /// As it is listed in documents and problems.
    package var json: JSONValue {
        [
            "id": .string(id), "state": .string(state.rawValue), "reason": .optional(reason?.rawValue), "method": .string(method),
            "url": .string(url),
        ]
    }
}

/// What an operation's own row does not say.
package struct OperationStanding: Hashable, Sendable {
    /// Those it needs, ended or not, as far as their rows are still there.
    package var dependsOn: [OperationLink]
    /// The first open operation before it in its lane.
    package var ahead: OperationLink?
    /// The one that has taken its place.
    package var supersededBy: String?
    /// The one whose place it has taken.
    package var fixes: String?
    /// Whether anything open waits behind it in its lane, or needs it: then it is not purged.
    package var isAwaited: Bool

    package init(
        dependsOn: [OperationLink] = [], ahead: OperationLink? = nil, supersededBy: String? = nil, fixes: String? = nil,
        isAwaited: Bool = false
    ) {
        self.dependsOn = dependsOn
        self.ahead = ahead
        self.supersededBy = supersededBy
        self.fixes = fixes
        self.isAwaited = isAwaited
    }

    /// What holds the operation back: the head of its lane, or the first it needs that has not been delivered.
    package var blocker: OperationLink? { ahead ?? dependsOn.first { $0.state != .delivered } }
}
