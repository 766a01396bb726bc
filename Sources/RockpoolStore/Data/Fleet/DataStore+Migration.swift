// The way of an outbox into the database of a fleet and back, with the server stopped (docs/fleet.md#joining-and-leaving).
package import Logging
package import RockpoolCore

extension DataStore {
    /// Brings the outbox of a stopped server into the database of a fleet, as its first start with these settings would. What is there
    /// already stays. After a crash at any moment it may run again.
    /// - Returns: what this node and the database have then.
    /// - Throws: `.locked` while a server runs, `.away` with the reason, `.unavailable` if the counts differ.
    package static func bring(
        _ directory: String, into outbox: OutboxSettings, settings: StorageSettings, clock: @escaping @Sendable () -> Timestamp,
        logger: Logger
    ) async throws -> OutboxCensus {
        let wasReplica = try await isReplica(directory, settings: settings, clock: clock, logger: logger)
        do {
            return try await with(directory, outbox: outbox, settings: settings, clock: clock, logger: logger) { store in
                guard try await store.hasArrived() else {
                    throw DataStoreError.unavailable("the outbox was moved from there: first run rockpool outbox migrate --to sqlite again")
                }
                return try await store.comparedCensus()
            }
        } catch DataStoreError.away(let detail) where !wasReplica {
            // It was in no fleet, and goes on as before.
            try await with(directory, outbox: OutboxSettings(), settings: settings, clock: clock, logger: logger) { _ in }
            throw DataStoreError.away(detail)
        }
    }

    /// Takes the outbox of a fleet into the database of its last node, whose server is stopped, and empties the fleet's. After a crash at
    /// any moment it may run again.
    /// - Parameter outbox: how this node takes part in the fleet.
    /// - Returns: what this node has then.
    /// - Throws: as `bring`, and `.unavailable` while another node is there or has something that is not in the database.
    package static func takeBack(
        _ directory: String, from outbox: OutboxSettings, settings: StorageSettings, clock: @escaping @Sendable () -> Timestamp,
        logger: Logger
    ) async throws -> OutboxCensus {
        if try await isReplica(directory, settings: settings, clock: clock, logger: logger) {
            _ = try await with(directory, outbox: outbox, settings: settings, clock: clock, logger: logger) { store in
                guard try await store.hasArrived() else { return }
                _ = try await store.comparedCensus()
                try await store.emptyFleet()
            }
        }
        FailPoint.afterEmptying.reached()
        return try await with(directory, outbox: OutboxSettings(), settings: settings, clock: clock, logger: logger) { store in
            try await store.reading { try OutboxCensus(in: $0) }
        }
    }

    private static func isReplica(
        _ directory: String, settings: StorageSettings, clock: @escaping @Sendable () -> Timestamp, logger: Logger
    ) async throws -> Bool {
        try await with(directory, outbox: nil, settings: settings, clock: clock, logger: logger) { $0.replica != nil }
    }

    static func with<Value: Sendable>(
        _ directory: String, outbox: OutboxSettings?, settings: StorageSettings, clock: @escaping @Sendable () -> Timestamp,
        logger: Logger, _ body: (DataStore) async throws -> Value
    ) async throws -> Value {
        let store = try open(directory: directory, settings: settings, outbox: outbox, clock: clock, logger: logger)
        do {
            let value = try await body(store)
            await store.close()
            return value
        } catch {
            await store.close()
            throw error
        }
    }

    /// Waits until this node is in its fleet.
    /// - Returns: false if the fleet's outbox has moved here already.
    /// - Throws: `.away` after ten seconds.
    private func hasArrived() async throws -> Bool {
        let end = ContinuousClock.now + .seconds(10)
        while !maySend {
            if fleet?.hasMovedHere == true { return false }
            guard .now < end else { throw DataStoreError.away(fleet?.absence ?? "no answer") }
            try await Task.sleep(for: .milliseconds(50))
        }
        return true
    }

    /// Brings this node and the database to the same state, and counts in both.
    private func comparedCensus() async throws -> OutboxCensus {
        guard let replica = fleetReplica else { throw DataStoreError.unavailable("the outbox is in no fleet") }
        var counts: (own: OutboxCensus, shared: OutboxCensus)?
        // What is changed in the same transaction, such as by a take-over, reaches the database after the count.
        for _ in 0..<5 {
            try await queue.commit { _ in }
            let found = try await queue.commit { (own: try OutboxCensus(in: $0), shared: try OutboxCensus(at: replica.log)) }
            if found.own == found.shared { return found.own }
            counts = found
        }
        throw DataStoreError.unavailable("the counts differ: \(counts.map { "\($0.own) here, \($0.shared) in the database" } ?? "")")
    }

    /// Empties the shared database, of which this node has everything; no other node can begin with what it has of it.
    func emptyFleet() async throws {
        guard let replica = fleetReplica else { return }
        try await queue.commit { _ in
            try replica.empty()
            try replica.keep(.moved)
        }
    }
}
