// The mark of a cached copy that a write through this proxy has made out of date (docs/outbox.md#effects).

/// States that a write, sent through this proxy after the copy was fetched, has changed what the copy represents.
///
/// While the upstream is reachable such a copy is fetched anew, without its validators where the write was one to its URL. While it is not,
/// the copy is served.
package struct OwnWriteMark: Hashable, Sendable {
    /// The end of the last such write.
    package var at: Tick
    /// True if the copy includes every such write: it is the upstream's answer, or the result computed from the request. False if an effect
    /// is unknown; then the copy is served with `Rockpool-Dirty: 1`.
    package var isIncluded: Bool

    /// Creates the mark of a write that ended at `at`.
    package init(at: Tick, isIncluded: Bool) {
        self.at = at
        self.isIncluded = isIncluded
    }
}

extension StoredResponse {
    /// Own writes that have ended by then are part of the copy: its request, or the last own write that was worked into it.
    package var includesWritesUntil: Tick {
        guard let ownWrite, ownWrite.isIncluded else { return asked }
        return max(asked, ownWrite.at)
    }

    /// True if the copy is a representation that its client may have seen last: not one that an own write has made out of date. The write
    /// of another client only demands that the copy is validated.
    package var isKnownState: Bool { head.status == 200 && part == nil && !isDirty }

    /// True if the copy lacks the effect of an own write.
    package var isDirty: Bool { ownWrite.map { !$0.isIncluded } ?? false }
}
