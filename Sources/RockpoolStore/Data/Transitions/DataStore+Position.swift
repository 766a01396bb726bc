// The part of an operation's row that its transitions need (docs/outbox.md#states).
import GRDB
import RockpoolCore

extension DataStore {
    /// The columns needed to move an operation; no others, because they are read for every operation sent.
    struct Position {
        var sequence: Int64
        var state: OperationState
        var place: Int64
        var upstream: String
        var lane: String
        var localID: LocalID?
    }

    static func position(_ id: String, in db: Database) throws -> Position {
        let statement = try db.cachedStatement(sql: "SELECT seq, state, place, upstream, lane, local_id FROM op WHERE id = ?")
        guard let row = try Row.fetchOne(statement, arguments: [id]) else { throw DataStoreError.notFound(id: id) }
        var columns = RowReader(row)
        let sequence: Int64 = try columns.next()
        return Position(
            sequence: sequence, state: try columns.nextWord(), place: try columns.next(), upstream: try columns.next(),
            lane: try columns.next(), localID: try columns.nextIfAny(String.self).flatMap { LocalID($0) })
    }

    /// The position of an operation that was read before: only its state may have changed since.
    static func position(of known: QueuedWrite, in db: Database) throws -> Position {
        let statement = try db.cachedStatement(sql: "SELECT state FROM op WHERE seq = ?")
        guard let state = try statement.first([known.sequence.databaseValue], in: db, { try $0.nextWord(OperationState.self) }) else {
            throw DataStoreError.notFound(id: known.id)
        }
        return Position(
            sequence: known.sequence, state: state, place: known.place, upstream: known.upstream, lane: known.lane, localID: known.localID)
    }

    func known(_ id: String, in db: Database) throws -> QueuedWrite {
        guard let operation = try Self.fetch(in: db, where: "id = ?", [id]) else { throw DataStoreError.notFound(id: id) }
        return operation
    }
}
