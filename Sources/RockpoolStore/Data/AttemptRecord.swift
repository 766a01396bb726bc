// One sending of an operation, as it is kept (outbox.md §1.2, `attempt`).
import GRDB
package import RockpoolCore

/// What is known of one attempt after it.
package struct AttemptRecord: Hashable, Sendable {
    /// 1 for the first.
    package var number: Int
    package var startedAt: Timestamp
    /// nil while it is under way.
    package var endedAt: Timestamp?
    /// Whether the connection was new.
    package var isFreshConnection: Bool?
    package var bytesSent: Int64?
    package var bytesTotal: Int64?
    package var status: Int?
    package var error: String?
    /// How much may have reached the upstream.
    package var sent: TransferFailure.Sent?
    /// Whether its operation has been revised since: only what is known to have had no effect is (outbox.md §1.7).
    package var isOfEarlierRevision = false

    /// - Parameters `number`, `startedAt`, `endedAt`: given by the store when it finishes an attempt.
    package init(
        number: Int = 0, startedAt: Timestamp = .distantPast, endedAt: Timestamp? = nil, isFreshConnection: Bool? = nil,
        bytesSent: Int64? = nil, bytesTotal: Int64? = nil, status: Int? = nil, error: String? = nil, sent: TransferFailure.Sent? = nil
    ) {
        self.number = number
        self.startedAt = startedAt
        self.endedAt = endedAt
        self.isFreshConnection = isFreshConnection
        self.bytesSent = bytesSent
        self.bytesTotal = bytesTotal
        self.status = status
        self.error = error
        self.sent = sent
    }

    static let columns = """
        n, started, ended, fresh_conn, bytes_sent, bytes_total, status, error, evidence,
        rev <> (SELECT key_rev FROM op WHERE op.seq = attempt.seq)
        """

    /// In SQL, beside the row of `op`, what `AttemptOutcome.mayStillRun` says: no answer came to what was sent, or only one that had lost
    /// the origin. Of earlier revisions it is known.
    static let mayStillRun = """
        attempt.rev = op.key_rev AND ended IS NOT NULL AND (status IS NULL AND evidence IN ('maybe', 'yes')
            OR status BETWEEN 500 AND 599 AND status NOT IN (501, 503, 505, 511))
        """

    init(row: Row) throws {
        var columns = RowReader(row)
        self.init(
            number: try columns.next(), startedAt: Timestamp(milliseconds: try columns.next()),
            endedAt: try columns.nextIfAny(Int64.self).map(Timestamp.init(milliseconds:)), isFreshConnection: try columns.nextIfAny(),
            bytesSent: try columns.nextIfAny(), bytesTotal: try columns.nextIfAny(), status: try columns.nextIfAny(),
            error: try columns.nextIfAny(), sent: try columns.word())
        isOfEarlierRevision = try columns.next()
    }
}
