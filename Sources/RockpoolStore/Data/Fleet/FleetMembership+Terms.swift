// What a node must have in common with its fleet, and the removal of what every node has seen (docs/fleet.md#schema).

extension FleetMembership {
    /// - Throws: `Ended` when this node has another schema or another secret, has missed changes that are no longer there, or has seen
    ///   changes that never will be.
    func checkTerms(on connection: PostgreSQLConnection) throws {
        try connection.run("INSERT INTO rockpool.meta VALUES ('key', $1) ON CONFLICT DO NOTHING", [.text(keyMark)], within: .seconds(5))
        let rows = try connection.run("SELECT name, value FROM rockpool.meta", within: .seconds(5)).first ?? []
        let terms = Dictionary(rows.map { ($0[0].text ?? "", $0[1].text ?? "") }) { first, _ in first }
        guard terms["version"].flatMap({ Int($0) }) == SharedSchema.version else {
            throw Ended(description: "its schema is not version \(SharedSchema.version): upgrade this node", isForGood: true)
        }
        guard terms["key"] == keyMark else {
            throw Ended(
                description: "this node has another secret than its fleet: copy install-key from a node's state_dir before the start",
                isForGood: true)
        }
        guard terms["moved"] != replica.node else {
            noteMove()
            throw Ended(
                description: "the outbox was moved to this node's data.sqlite: run rockpool outbox migrate --to sqlite again",
                isForGood: true)
        }
        guard replica.position == 0 || replica.position >= terms["pruned"].flatMap({ Int64($0) }) ?? 0 else {
            let reason = "this node was away for more than 30 days, or its fleet's outbox was moved"
            throw Ended(description: "\(reason): stop it, run rockpool fleet rejoin, and start it", isForGood: true)
        }
        try checkMarks(of: terms)
    }

    /// - Throws: `Ended` when this node has seen more than a server had that was promoted since.
    private func checkMarks(of terms: [String: String]) throws(Ended) {
        let prefix = SharedSchema.timelinePrefix
        let newer = terms.filter { name, _ in name.hasPrefix(prefix) && Int64(name.dropFirst(prefix.count)) ?? 0 > replica.timeline }
        let mark = newer.values.compactMap { Int64($0) }.min() ?? .max
        guard replica.position <= mark else { throw Ended(description: SharedLog.lacks(mark, of: replica.position), isForGood: true) }
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

    /// Removes some of what every node has read of deleted rows, of lanes with nothing in flight, of the history of commits, and of bodies that no
    /// row names; a node that was away for 30 days does not count. A lock that does not come free soon leaves it for the next time.
    /// - Returns: true if there is more.
    func prune(on connection: PostgreSQLConnection) throws(PostgreSQLError) -> Bool {
        do throws(PostgreSQLError) {
            let results = try connection.run(Self.pruning, within: .seconds(30))
            return results.contains { ($0.first?.first?.number ?? 0) >= Self.portion }
        } catch .refused(state: "55P03", _) {
            try connection.run("ROLLBACK", within: .seconds(5))
            return false
        }
    }

    /// So many rows are removed at once, while the other nodes wait.
    private static let portion: Int64 = 1000

    /// The key of a body's row, as `RowBytes` has it: the name, the type of bytes, their length, and the bytes.
    private static let bodyKey = "'\\x0373686104'::bytea || int4send(length(sha)) || sha"

    /// Each DELETE says how many rows it has removed.
    private static let pruning = """
        \(SharedSchema.begin);
        \(SharedSchema.lock);
        DELETE FROM rockpool.node WHERE expires < clock_timestamp() - interval '30 days'
            AND NOT EXISTS (SELECT 1 FROM rockpool.claim WHERE claim.node = node.id);
        DELETE FROM rockpool.meta WHERE name LIKE '\(SharedSchema.settingsPrefix)%'
            AND NOT EXISTS (SELECT 1 FROM rockpool.node WHERE meta.name = '\(SharedSchema.settingsPrefix)' || node.id);
        WITH gone AS (
            DELETE FROM rockpool.lane WHERE (upstream, lane) IN (
                SELECT upstream, lane FROM rockpool.lane WHERE NOT EXISTS (
                    SELECT 1 FROM rockpool.claim WHERE claim.upstream = lane.upstream AND claim.lane = lane.lane) LIMIT \(portion))
                RETURNING 1
        ) SELECT count(*) FROM gone;
        WITH gone AS (
            DELETE FROM rockpool.word WHERE n IN (
                SELECT n FROM (SELECT n, at FROM rockpool.word ORDER BY n LIMIT \(portion)) AS oldest
                    WHERE at < clock_timestamp() - interval '1 hour') RETURNING 1
        ) SELECT count(*) FROM gone;
        WITH gone AS (
            DELETE FROM rockpool.blob WHERE sha IN (
                SELECT sha FROM rockpool.blob WHERE NOT EXISTS (
                    SELECT 1 FROM rockpool.item WHERE tbl = 'blob' AND part = 0 AND data IS NOT NULL AND key = \(bodyKey)) LIMIT 100)
                RETURNING 1
        ) SELECT count(*) FROM gone;
        WITH gone AS (
            DELETE FROM rockpool.item WHERE n IN (
                SELECT n FROM rockpool.item WHERE data IS NULL AND n < (SELECT min(position) FROM rockpool.node) ORDER BY n LIMIT \(portion))
                RETURNING n
        ), noted AS (
            UPDATE rockpool.meta SET value = greatest(value::bigint, (SELECT coalesce(max(n), 0) FROM gone))::text WHERE name = 'pruned'
        ) SELECT count(*) FROM gone;
        COMMIT
        """
}
