// The relations of an operation to others.

/// The relations of an operation that its own row does not contain.
package struct OperationRelations: Hashable, Sendable {
    /// The operations it needs, ended or not, as far as their rows still exist.
    package var dependsOn: [OperationLink]
    /// The first open operation before it in its lane.
    package var ahead: OperationLink?
    /// The id of the operation that replaced it.
    package var supersededBy: String?
    /// The id of the operation that it replaced.
    package var fixes: String?
    /// True if an open operation waits behind it in its lane, or needs it: then it is not purged.
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

    /// The operation that blocks it: the head of its lane, or the first dependency that has not been delivered.
    package var blocker: OperationLink? { ahead ?? dependsOn.first { $0.state != .delivered } }
}
