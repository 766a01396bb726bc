// How SQL statements seal and open the columns that hold bodies: the key is in no statement, and no row leaves the store sealed.
import FoundationEssentials
import GRDB
import Synchronization

/// `sealed(x)`, `unsealed(x)` and `sealed_name(sha)` of bodies, `sealed_target(t)` and `unsealed_target(t)` of request targets, for the
/// connections of one database. NULL stays NULL.
final class SealFunctions: Sendable {
    private let current = Mutex(BodySeal.off)

    /// Seals with `seal` from now on. The key is read after the database was opened: a key without a database is a sign of damage.
    func use(_ seal: BodySeal) { current.withLock { $0 = seal } }

    private var seal: BodySeal { current.withLock { $0 } }

    /// Adds the functions to a connection.
    func add(to db: Database) {
        add("sealed", to: db) { seal, bytes in seal.isSealing || BodySeal.isSealed(bytes) ? try seal.seal(bytes) : bytes }
        add("unsealed", to: db) { seal, bytes in BodySeal.isSealed(bytes) ? try seal.open(bytes) : bytes }
        add("sealed_name", to: db) { seal, hash in seal.isSealing ? seal.name(of: hash) : hash }
        addText("sealed_target", to: db) { seal, target in try seal.sealed(target: target) }
        addText("unsealed_target", to: db) { seal, target in seal.unsealed(target: target) }
    }

    private func addText(_ name: String, to db: Database, _ body: @escaping @Sendable (BodySeal, String) throws -> String) {
        db.add(
            function: DatabaseFunction(name, argumentCount: 1) { [self] values in
                try values.first.flatMap { String.fromDatabaseValue($0) }.map { try body(seal, $0) }
            })
    }

    private func add(_ name: String, to db: Database, _ body: @escaping @Sendable (BodySeal, [UInt8]) throws -> [UInt8]) {
        db.add(
            function: DatabaseFunction(name, argumentCount: 1) { [self] values in
                try values.first.flatMap { Data.fromDatabaseValue($0) }.map { Data(try body(seal, Array($0))) }
            })
    }
}
