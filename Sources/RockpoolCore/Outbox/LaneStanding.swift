// The operations before a new write of a lane, computed from database rows alone (docs/outbox.md#principals).

/// The open operations of one principal in a lane that are in one state.
package struct LaneStanding: Hashable, Sendable {
    /// The operations' principal; nil for anonymous ones.
    package var principal: String?
    package var state: OperationState
    /// The place of the first of them.
    package var firstPlace: Int64

    package init(principal: String?, state: OperationState, firstPlace: Int64) {
        self.principal = principal
        self.state = state
        self.firstPlace = firstPlace
    }

    /// Returns the states of the operations that a new one of `principal` waits for: all of its own, and the first of every other principal
    /// if it can be sent. A proved principal does not wait for an unproved one.
    package static func holding(
        _ principal: String?, among standings: [LaneStanding], isProved: (String?) -> Bool
    ) -> Set<OperationState> {
        var states = Set(standings.lazy.filter { $0.principal == principal }.map(\.state))
        let others = Dictionary(grouping: standings.lazy.filter { $0.principal != principal }, by: \.principal)
        for (other, standings) in others {
            guard let first = standings.min(by: { $0.firstPlace < $1.firstPlace }), !first.state.isStuck,
                isProved(other) || !isProved(principal)
            else { continue }
            states.insert(first.state)
        }
        return states
    }
}
