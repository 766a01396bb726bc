// Selects conflicts of a list.

/// The selection of a list of conflicts.
package struct ConflictFilter: Hashable, Sendable {
    package var upstream: String?
    /// The entity's path.
    package var entity: String?
    /// True for open conflicts only, false for decided ones only, nil for all.
    package var isOpen: Bool?
    /// 1…1000.
    package var limit: Int
    /// `next` of the previous page.
    package var cursor: Int64?

    package init(upstream: String? = nil, entity: String? = nil, isOpen: Bool? = true, limit: Int = 100, cursor: Int64? = nil) {
        self.upstream = upstream
        self.entity = entity
        self.isOpen = isOpen
        self.limit = limit
        self.cursor = cursor
    }
}
