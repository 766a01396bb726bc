// The description of one kind of entity: its paths, and the locations of its id and version (docs/reference/configuration.md#resources,
// `resources`).

/// A kind of entity of an upstream. Offline writes and merges use these declarations.
package struct Resource: Hashable, Sendable {
    package enum OfflineResponse: String, CaseIterable, Sendable, Codable { case accepted, optimistic }
    package enum Conflict: String, CaseIterable, Sendable, Codable {
        case lastWriteWins = "last-write-wins"
        case serverWins = "server-wins"
        case clientWins = "client-wins"
        case fieldMerge = "field-merge"
        case keepBoth = "keep-both"
        case ask
    }

    /// Empty for a single item.
    package var collection: String
    /// The format of the API; nil for none of those that are known.
    package var profile: Profile?
    package var item: String?
    package var items: String
    /// The object within an element of the collection's array.
    package var element = ""
    package var envelope: String
    /// The object within an item's object that writes may carry alone: `/data` of `{"id": 7, "data": {…}}`.
    package var content = ""
    package var id: String
    /// The member of an entry of a list that shows clients what the entry waits for; nil for none. The upstream never gets it.
    package var mark: String?
    /// `etag` or a JSON Pointer.
    package var version: String
    package var updatedAt: String?
    /// nil: as the upstream answered before, if that answer carried nothing, else 202.
    package var offlineResponse: OfflineResponse?
    package var conflict: Conflict
    /// JSON Pointer → field strategy (docs/reference/behaviour.md#conflicts).
    package var fields: [String: String]
    package var delta: Delta?
    package var sync: Sync?
    /// The condition under which an answer to a write is a success; nil: every 2xx. A route's rule comes first.
    package var success: SuccessRule?
    /// What is known of it if it was learned from traffic; nil for a declared one.
    package var learned: LearnedTraits?

    package init(
        collection: String, item: String? = nil, items: String = "", envelope: String = "", id: String = "/id", version: String = "etag",
        updatedAt: String? = nil, offlineResponse: OfflineResponse? = nil, conflict: Conflict = .fieldMerge,
        fields: [String: String] = [:], delta: Delta? = nil, sync: Sync? = nil
    ) {
        self.collection = collection
        self.item = item
        self.items = items
        self.envelope = envelope
        self.id = id
        self.version = version
        self.updatedAt = updatedAt
        self.offlineResponse = offlineResponse
        self.conflict = conflict
        self.fields = fields
        self.delta = delta
        self.sync = sync
    }

    /// The request for changes since a cursor (docs/outbox.md#delta-pull).
    package struct Delta: Hashable, Sendable {
        package var query: String
        package var cursor: String
        package var deleted: String?
        package var every: TimeSpan
        package var fullEvery: TimeSpan

        package init(
            query: String, cursor: String, deleted: String? = nil, every: TimeSpan = .minutes(5), fullEvery: TimeSpan = .hours(24)
        ) {
            self.query = query
            self.cursor = cursor
            self.deleted = deleted
            self.every = every
            self.fullEvery = fullEvery
        }
    }
    /// Endpoints of an API that accepts writes in batches, or returns changes since its own cursor (docs/guide/sync.md).
    package struct Sync: Hashable, Sendable {
        /// Path that accepts `{"operations": […]}`; nil sends each write separately.
        package var push: String?
        /// Path and query with `{cursor}`; nil pulls by `delta`.
        package var pull: String?
        /// The form of requests to `push` and of their answers.
        package var batch = BatchFormat()
        /// JSON Pointers into a pull response: changed items, deleted items, the next cursor, and a flag for more pages.
        package var items: String
        package var tombstones: String
        package var cursor: String
        package var more: String

        package init(
            push: String? = nil, pull: String? = nil, items: String = "/changes", tombstones: String = "/tombstones",
            cursor: String = "/cursor", more: String = "/hasMore"
        ) {
            self.push = push
            self.pull = pull
            self.items = items
            self.tombstones = tombstones
            self.cursor = cursor
            self.more = more
        }
    }
}
