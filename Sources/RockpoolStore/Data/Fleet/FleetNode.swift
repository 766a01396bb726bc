// The nodes of a fleet, as the shared database lists them (docs/reference/admin-api.md#fleet).

/// A node that has registered.
package struct FleetNode: Hashable, Sendable {
    /// Whether the node works.
    package enum State: String, Sendable {
        /// It holds its lease.
        case live
        /// Its lease has ended, and no other node has noticed yet.
        case expired
        /// It has stopped, or another node took over from it.
        case gone
    }

    package var id: String
    package var name: String
    package var state: State
    /// The number of its starts and of its returns after it was fenced.
    package var epoch: Int64
    /// Seconds since the last renewal of its lease, by the database's clock.
    package var age: Double
    /// The number of changes that it had not read at its last renewal.
    package var lag: Int64
    /// The number of writes that it kept for later at its last renewal.
    package var held: Int64
    /// The number of writes that it has in flight.
    package var inFlight: Int64

    static let selection = """
        SELECT id, name, CASE WHEN fenced THEN 'gone' WHEN expires < clock_timestamp() THEN 'expired' ELSE 'live' END, epoch::text,
            extract(epoch FROM clock_timestamp() - expires + interval '15 s')::text,
            greatest(0, (SELECT coalesce(max(n), 0) FROM rockpool.item) - position)::text, held::text,
            (SELECT count(*) FROM rockpool.claim WHERE claim.node = node.id)::text
            FROM rockpool.node WHERE name <> '' ORDER BY name, id
        """

    /// Takes a node off the list; nothing is kept for it to read. Its epoch stays, so that none is given twice. A start names it again.
    static let forgetting = "UPDATE rockpool.node SET name = '', position = \(Int64.max), held = 0 WHERE id = $1 AND fenced"

    /// - Returns: nil for a row of another form.
    init?(_ row: [[UInt8]?]) {
        guard row.count == 8, let id = row[0].text, let name = row[1].text, let state = row[2].text.flatMap(State.init),
            let epoch = row[3].number, let age = row[4].text.flatMap(Double.init), let lag = row[5].number, let held = row[6].number,
            let inFlight = row[7].number
        else { return nil }
        (self.id, self.name, self.state, self.epoch) = (id, name, state, epoch)
        (self.age, self.lag, self.held, self.inFlight) = (age, lag, held, inFlight)
    }
}
