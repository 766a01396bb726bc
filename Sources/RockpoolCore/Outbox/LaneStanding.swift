// What a new write of a lane comes behind, where only rows are at hand (outbox.md §1.8).

/// The open operations of one principal in a lane that are in one state.
package struct LaneStanding: Hashable, Sendable {
    /// Whose they are; nil: nobody's.
    package var principal: String?
    package var state: OperationState
    /// The place of the first of them.
    package var firstPlace: Int64

    package init(principal: String?, state: OperationState, firstPlace: Int64) {
        self.principal = principal
        self.state = state
        self.firstPlace = firstPlace
    }

    /// The states of those operations that a new one of `principal` waits for: its own, and of everybody else's what is first and can be
    /// sent, unless that is somebody's who has proved no identity, and it has.
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
