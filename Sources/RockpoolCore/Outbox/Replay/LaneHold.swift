// Until when a lane waits for earlier attempts that may still run, and who does (docs/outbox.md#wire-rule, the zombie attempt).

/// What holds one lane.
package struct LaneHold: Hashable, Sendable {
    /// An attempt of a proved principal: everybody waits.
    private var forAll: Timestamp?
    /// An attempt of anybody else: nobody waits who is proved.
    private var forUnproved: Timestamp?

    /// Holds nothing yet.
    package init() {}

    /// Never holds for less than before, since each of the attempts may still run.
    package mutating func extend(until moment: Timestamp, byProved isProved: Bool) {
        if isProved {
            forAll = max(moment, forAll ?? moment)
        } else {
            forUnproved = max(moment, forUnproved ?? moment)
        }
    }

    /// Until when a principal waits; long past where nothing holds it.
    package func moment(forProved isProved: Bool) -> Timestamp {
        max(forAll ?? .distantPast, isProved ? .distantPast : forUnproved ?? .distantPast)
    }

    /// The same under a clock that was set back.
    func setBack(by span: TimeSpan) -> LaneHold {
        var hold = self
        (hold.forAll, hold.forUnproved) = (forAll.map { $0 - span }, forUnproved.map { $0 - span })
        return hold
    }
}
