// Compensation for a wall clock that is set back: waits keep their remaining duration instead of lasting until the clock catches up
// (docs/storage.md#clock).

extension ReplayMachine {
    /// The largest backward step that does not count as a set-back clock.
    private static let tolerance = TimeSpan.seconds(2)

    /// Records the time of a step, and shifts all waits when the clock was set back.
    mutating func observe(_ now: Timestamp) {
        let behind = lastStep.map { $0 - now } ?? .zero
        lastStep = now
        guard behind > Self.tolerance else { return }
        for sequence in Array(entries.keys) {
            entries[sequence]?.setBack(by: behind)
            wake(sequence, at: now)
        }
        laneHolds = laneHolds.mapValues { $0.setBack(by: behind) }
        for upstream in Array(gates.keys) { gates[upstream]?.setBack(by: behind) }
    }
}

extension ReplayMachine.Entry {
    fileprivate mutating func setBack(by span: TimeSpan) {
        summary.nextAttemptAt = summary.nextAttemptAt - span
        notBefore = notBefore - span
        mayRunUntil = mayRunUntil.map { $0 - span }
    }
}
