// A wall clock that is set back: what waits goes on waiting for as long as it had to, not until the clock is there again (storage.md §7).

extension ReplayMachine {
    /// By how much a step may lie before the last one without the clock having been set.
    private static let tolerance = TimeSpan.seconds(2)

    /// Notes the time of a step, and moves every moment that is waited for back with a clock that was.
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
