// Conditions on the state of an operation's row (docs/outbox.md#states).
import RockpoolCore

extension OperationState {
    /// The condition of an operation that has not ended, written as in the partial indexes of open operations: SQLite uses an index only for
    /// the same comparisons.
    static let isOpen = ConstantLists.unrolled("state NOT IN (\(endedList))")

    /// `isOpen` for a row with this name.
    static func isOpen(_ row: String) -> String { ConstantLists.unrolled("\(row).state NOT IN (\(endedList))") }

    /// The ended states, as a list.
    static let endedList = OperationState.allCases.filter(\.hasEnded).map { "'\($0.rawValue)'" }.joined(separator: ", ")

    /// True for an operation that keeps its place in the order of its client (`OperationSummary.reach`), as far as its own row shows: it is or
    /// will be sent, waits for a credential of its principal, or its effect is looked for.
    static let keepsOrder = """
        (state IN ('pending', 'inflight') OR state = 'parked' AND reason = 'auth' AND principal <> ''
            OR state = 'uncertain' AND (method <> 'POST' OR entity_type IS NOT NULL) AND probes < \(ReplayContext.probes))
        """
}
