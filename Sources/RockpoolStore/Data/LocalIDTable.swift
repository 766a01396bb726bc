// The id map in memory, in both directions, for every request that may contain a local id (docs/outbox.md#local-ids).
import GRDB
import OrderedCollections
package import RockpoolCore
import Synchronization

/// Every local id ever assigned, with its mapping. A client may use a local id indefinitely, so none is removed.
package final class LocalIDTable: Sendable {
    private struct Place: Hashable {
        let upstream: String
        let collection: String?
    }

    /// What is kept of each of a hundred thousand ids.
    private struct Row {
        /// Index in `places`.
        let place: Int32
        var mapping: Boxed<ServerMapping>?
    }

    private struct ServerKey: Hashable {
        var upstream: String
        var collection: String
        var id: String
    }

    private struct State {
        var rows: [LocalID: Row] = [:]
        var places: OrderedSet<Place> = []
        var aliases: [ServerKey: LocalID] = [:]
        /// The places with an id that is a number, local or mapped.
        var numbered: Set<Int32> = []
        /// True where ids are numbers, by what names the ids of a resource; not stored.
        var types: [String: Bool] = [:]
    }

    /// The most resources whose type of ids is kept.
    private static let typeLimit = 1024

    private let state = Mutex(State())

    /// True if no local id was ever assigned: requests need not be scanned then.
    package var isEmpty: Bool { state.withLock { $0.rows.isEmpty } }

    /// True if the id was assigned here, mapped or not.
    package func knows(_ id: LocalID) -> Bool { state.withLock { $0.rows[id] != nil } }

    /// Returns the mapping of a local id; nil until its create is delivered.
    package func mapping(of id: LocalID) -> ServerMapping? { state.withLock { $0.rows[id]?.mapping?.value } }

    /// Returns the local id formerly assigned to the upstream's `id` in a collection.
    package func alias(upstream: String, collection: String, id: String) -> LocalID? {
        state.withLock { $0.aliases.isEmpty ? nil : $0.aliases[ServerKey(upstream: upstream, collection: collection, id: id)] }
    }

    /// Returns the request with every local id replaced by its server id. An id that was not assigned here is kept.
    /// - Throws: `UnmappedLocalIDs` for an id without a mapping yet.
    package func substituted(_ head: RequestHead, _ body: [UInt8]) throws(UnmappedLocalIDs) -> (head: RequestHead, body: [UInt8]) {
        let references = LocalIDScan.references(head: head, body: body)
        guard references.contains(where: { knows($0.id) }) else { return (head, body) }
        var map: [LocalID: ServerID] = [:]
        for reference in references {
            if let mapping = mapping(of: reference.id) {
                map[reference.id] = mapping.id
            } else if !knows(reference.id) {
                map[reference.id] = ServerID(text: reference.id.text, isNumber: reference.id.isNumber)
            }
        }
        return try LocalIDSubstitution.apply(head: head, body: body, map: map)
    }

    // MARK: - The type of ids

    /// Mints an id that was not assigned here: a number where the ids of the API are numbers.
    package func mint(isNumber: Bool, now: Timestamp) -> LocalID {
        while true {
            let (one, two) = (UInt64.random(in: 0 ... .max), UInt64.random(in: 0 ... .max))
            let id = isNumber ? LocalID.makeNumber(random: one) : LocalID.make(now: now, random: (one, two))
            if !knows(id) { return id }
        }
    }

    /// True if a collection has had an id that is a number.
    package func hasNumbers(upstream: String, collection: String) -> Bool {
        state.withLock { state in
            guard let place = state.places.firstIndex(of: Place(upstream: upstream, collection: collection)) else { return false }
            return state.numbered.contains(Int32(place))
        }
    }

    /// True if the ids at a place are known to be numbers; nil if nothing is known of them.
    package func areNumbers(at place: String) -> Bool? { state.withLock { $0.types[place] } }

    /// Takes what was seen of the ids at a place.
    package func note(areNumbers: Bool, at place: String) {
        state.withLock { state in
            if state.types.count >= Self.typeLimit { state.types = [:] }
            state.types[place] = areNumbers
        }
    }

    // MARK: - Changes

    func load(in db: Database) throws {
        if let count = try Int.fetchOne(db, sql: "SELECT count(*) FROM id_map") { state.withLock { $0.rows.reserveCapacity(count) } }
        try load(where: "1", [], in: db)
    }

    /// Reads some local ids again.
    func load(_ ids: Set<String>, in db: Database) throws {
        for id in ids { try load(where: "local_id = ?", [id.databaseValue], in: db) }
    }

    private func load(where condition: String, _ values: [DatabaseValue], in db: Database) throws {
        let sql = "SELECT local_id, upstream, entity_type, server_id, is_number, unsealed_url(server_url) FROM id_map WHERE \(condition)"
        _ = try db.cachedStatement(sql: sql).all(values, in: db) { columns in
            guard let id = LocalID(try columns.next(String.self)) else { return }
            let upstream: String = try columns.next()
            let collection: String? = try columns.nextIfAny()
            let text: String? = try columns.nextIfAny()
            let isNumber: Bool = try columns.next()
            let url: String = try columns.nextIfAny() ?? ""
            note(id, upstream: upstream, collection: collection)
            if let text { note(id, became: ServerMapping(id: ServerID(text: text, isNumber: isNumber), url: url)) }
        }
    }

    func note(_ id: LocalID, upstream: String, collection: String?) {
        state.withLock { state in
            let place = state.places.append(Place(upstream: upstream, collection: collection)).index
            state.rows[id] = Row(place: Int32(place))
            if id.isNumber { state.numbered.insert(Int32(place)) }
        }
    }

    func note(_ id: LocalID, became mapping: ServerMapping) {
        state.withLock { state in
            state.rows[id]?.mapping = Boxed(mapping)
            guard let row = state.rows[id] else { return }
            if mapping.id.isNumber { state.numbered.insert(row.place) }
            guard let collection = state.places[Int(row.place)].collection else { return }
            let key = ServerKey(upstream: state.places[Int(row.place)].upstream, collection: collection, id: mapping.id.text)
            state.aliases[key] = id
        }
    }
}
