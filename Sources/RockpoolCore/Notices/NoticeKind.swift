// The events that an operator may be told about (docs/guide/operating.md#alarms).

/// The reason of a notice, as `notify.on` names it.
package enum NoticeKind: String, CaseIterable, Sendable, Codable {
    case dead, conflicted, uncertain, parked
    /// A route pauses, because its writes are refused one like the other.
    case massRefusal = "mass_refusal"
    /// A write has waited for longer than `notify.oldest_pending`.
    case oldestPending = "oldest_pending"
    /// The state directory holds more than `notify.storage`, or a disk is full.
    case storage
    /// An upstream has not answered for longer than `notify.away`.
    case away

    /// The kinds without `notify.on`: those that need a person.
    package static let standard: [NoticeKind] = allCases.filter { $0 != .parked }
}
