// Where an operation of a fleet is (docs/reference/admin-api.md#fleet).
package import RockpoolCore

/// The nodes that have to do with an operation, by name.
package struct FleetPlace: Hashable, Sendable {
    /// The node that took it, or brought it into the fleet; nil if it is not known any more.
    package var takenBy: String?
    /// The node that has its lane: something of that is in flight there.
    package var sentBy: String?
}

extension DataStore {
    /// Returns the places of operations by id; none without a fleet.
    /// - Throws: `.away`.
    package func fleetPlaces(of operations: [QueuedWrite]) async throws -> [String: FleetPlace] {
        guard let replica = fleetReplica else { return [:] }
        let held = operations.filter { holder(of: $0) != nil }
        let ids = operations.map(\.id)
        let rows = try await queue.commit { _ in
            try replica.log.run(
                FleetPlace.selection,
                [.texts(ids), .texts(operations.map(\.upstream)), .texts(operations.map { IndexedText.inColumn($0.lane) })])
        }
        var places = Dictionary(uniqueKeysWithValues: held.map { ($0.id, FleetPlace(takenBy: holder(of: $0))) })
        for row in rows where row.count == 3 {
            guard let id = row[0].text else { continue }
            places[id] = FleetPlace(takenBy: row[1].text, sentBy: row[2].text)
        }
        return places
    }
}

extension FleetPlace {
    fileprivate static let selection = """
        SELECT given.id, nullif(taker.name, ''), (
            SELECT sender.name FROM rockpool.claim JOIN rockpool.node AS sender ON sender.id = claim.node
                WHERE claim.upstream = given.upstream AND claim.lane = given.lane LIMIT 1)
            FROM unnest($1::text[], $2::text[], $3::text[]) AS given (id, upstream, lane)
            JOIN rockpool.item ON item.id = given.id LEFT JOIN rockpool.node AS taker ON taker.id = item.node
        """
}
