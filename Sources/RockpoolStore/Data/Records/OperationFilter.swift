// Selects operations of a list.
package import RockpoolCore

/// The selection of a list of operations.
package struct OperationFilter: Hashable, Sendable {
    /// nil: the states that have not ended.
    package var states: Set<OperationState>?
    package var lane: String?
    package var upstream: String?
    package var method: String?
    /// A part of the request's target.
    package var path: String?
    /// Only operations that were accepted longer ago.
    package var olderThan: TimeSpan?
    /// 1…1000.
    package var limit: Int
    /// `next` of the previous page.
    package var cursor: Int64?
    /// The number of selected operations to skip, for a jump to a page.
    package var offset = 0

    package init(
        states: Set<OperationState>? = nil, lane: String? = nil, upstream: String? = nil, limit: Int = 100, cursor: Int64? = nil
    ) {
        self.states = states
        self.lane = lane
        self.upstream = upstream
        self.limit = limit
        self.cursor = cursor
    }
}
