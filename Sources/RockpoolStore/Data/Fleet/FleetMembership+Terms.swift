// What a node must have in common with its fleet, and the removal of what every node has seen (docs/fleet.md#schema).

extension FleetMembership {
    /// - Throws: `Ended` when this node has another schema or another secret, has missed changes that are no longer there, or has seen
    ///   changes that never will be.
    func checkTerms(on connection: PostgreSQLConnection) throws {
        try connection.run("INSERT INTO rockpool.meta VALUES ('key', $1) ON CONFLICT DO NOTHING", [.text(keyMark)], within: .seconds(5))
        let rows = try connection.run("SELECT name, value FROM rockpool.meta", within: .seconds(5)).first ?? []
        let terms = Dictionary(rows.map { ($0[0].text ?? "", $0[1].text ?? "") }) { first, _ in first }
        guard terms["version"].flatMap({ Int($0) }) == SharedSchema.version else {
            throw Ended(description: "its schema is not version \(SharedSchema.version): upgrade this node")
        }
        guard terms["key"] == keyMark else {
            throw Ended(
                description: "this node has another secret than its fleet: copy install-key from a node's state_dir before the start")
        }
        guard terms["moved"] != replica.node else {
            noteMove()
            throw Ended(description: "the outbox was moved to this node's data.sqlite: run rockpool outbox migrate --to sqlite again")
        }
        guard replica.position == 0 || replica.position >= terms["pruned"].flatMap({ Int64($0) }) ?? 0 else {
            let reason = "this node was away for more than 30 days, or its fleet's outbox was moved"
            throw Ended(description: "\(reason): stop it, export what it holds, remove data.sqlite, and start it")
        }
        try checkMarks(of: terms)
    }

    /// - Throws: `Ended` when this node has seen more than a server had that was promoted since.
    private func checkMarks(of terms: [String: String]) throws(Ended) {
        let prefix = SharedSchema.timelinePrefix
        let newer = terms.filter { name, _ in name.hasPrefix(prefix) && Int64(name.dropFirst(prefix.count)) ?? 0 > replica.timeline }
        let mark = newer.values.compactMap { Int64($0) }.min() ?? .max
        guard replica.position <= mark else { throw Ended(description: SharedLog.lacks(mark, of: replica.position)) }
    }

    /// Marks a timeline that is new to this node, if no other node has.
    func markTimeline(_ timeline: Int64, on connection: PostgreSQLConnection) throws(PostgreSQLError) {
        guard timeline > replica.timeline else { return }
        let marking = SharedSchema.mark(timeline)
        try connection.run("\(SharedSchema.begin); \(SharedSchema.lock); \(marking); COMMIT", within: .seconds(10))
    }

    /// Makes the tables if they are not there. An `ALTER TABLE` waits for every reader of the table even where it has nothing to do, and the
    /// writers of the fleet wait for it.
    func makeTables(on connection: PostgreSQLConnection) throws(PostgreSQLError) {
        guard try connection.run(SharedSchema.isMade, within: .seconds(5)).first?.first?.first?.text != "t" else { return }
        try connection.run("\(SharedSchema.begin); \(SharedSchema.lock); \(SharedSchema.creation); COMMIT", within: .seconds(10))
    }

    /// Removes what is left of deleted rows once every node has read it, and lanes with nothing in flight; a node that was away for 30 days
    /// does not count. A lock that does not come free soon leaves it for the next time.
    func prune(on connection: PostgreSQLConnection) throws(PostgreSQLError) {
        do throws(PostgreSQLError) { try connection.run(Self.pruning, within: .seconds(30)) } catch .refused(state: "55P03", _) {
            try connection.run("ROLLBACK", within: .seconds(5))
        }
    }

    private static let pruning = """
        \(SharedSchema.begin);
        \(SharedSchema.lock);
        DELETE FROM rockpool.node WHERE expires < clock_timestamp() - interval '30 days'
            AND NOT EXISTS (SELECT 1 FROM rockpool.claim WHERE claim.node = node.id);
        DELETE FROM rockpool.lane WHERE NOT EXISTS (
            SELECT 1 FROM rockpool.claim WHERE claim.upstream = lane.upstream AND claim.lane = lane.lane);
        WITH gone AS (
            DELETE FROM rockpool.item WHERE data IS NULL AND n < (SELECT min(position) FROM rockpool.node) RETURNING n
        )
        UPDATE rockpool.meta SET value = greatest(value::bigint, (SELECT coalesce(max(n), 0) FROM gone))::text WHERE name = 'pruned';
        COMMIT
        """
}
