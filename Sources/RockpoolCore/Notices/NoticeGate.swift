// The limit of notices to one receiver: the first event at once, further ones of its kind together (docs/guide/operating.md#alarms).

/// Decides which notices are sent now, and which are counted until the end of a period.
package struct NoticeGate: Sendable {
    private struct Key: Hashable {
        var kind: NoticeKind?
        var upstream: String?
    }

    private struct Window {
        var end: Timestamp
        var held: Notice?
    }

    private let every: TimeSpan
    private var windows: [Key: Window] = [:]

    /// - Parameter every: the period.
    package init(every: TimeSpan) { self.every = every }

    /// Returns the notice if it may be sent now; otherwise holds it.
    package mutating func admit(_ notice: Notice, now: Timestamp) -> Notice? {
        let key = Key(kind: notice.kind, upstream: notice.upstream)
        guard var window = windows[key], now < window.end else {
            windows[key] = Window(end: now + every)
            return notice
        }
        if window.held == nil { window.held = notice } else { window.held?.fold(notice) }
        windows[key] = window
        return nil
    }

    /// Returns the held notices whose period is over. Each begins another period.
    package mutating func due(now: Timestamp) -> [Notice] {
        var notices: [Notice] = []
        for (key, window) in windows where now >= window.end {
            guard let held = window.held else {
                windows[key] = nil
                continue
            }
            notices.append(held)
            windows[key] = Window(end: now + every)
        }
        return notices
    }

    /// The first line of the outbox's log that a held notice rests on; nil without one.
    package var firstHeldLine: Int64? { windows.values.compactMap { $0.held?.line }.min() }
}
