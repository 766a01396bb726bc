// What the tests of a fleet have in common: nodes with one secret on one PostgreSQL.
import Foundation
import NIOCore
import RockpoolCore
import RockpoolTesting

@testable import RockpoolStore

protocol FleetCase {
    var scratch: Scratch { get }
    var time: ManualTime { get }
    var server: PostgreSQLServer { get }
}

extension FleetCase {
    /// Opens the store of a node; all have the secret of the first.
    func node(_ name: String, _ absence: OutboxAbsence = .local) async throws -> DataStore {
        let (own, first) = ("\(scratch.path)/\(name)", "\(scratch.path)/key")
        let files = FileManager.default
        if files.fileExists(atPath: first) {
            try files.createDirectory(atPath: own, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            try? files.removeItem(atPath: "\(own)/install-key")
            try files.copyItem(atPath: first, toPath: "\(own)/install-key")
        }
        defer { try? files.copyItem(atPath: "\(own)/install-key", toPath: first) }
        let store = try DataStore.open(
            directory: "\(scratch.path)/\(name)", settings: storage(), outbox: server.settings(name, absence),
            clock: { [time] in time.now }, logger: quiet)
        try await until { store.fleet?.absence == nil && store.maySend }
        return store
    }

    func until(_ isTrue: () async throws -> Bool) async throws {
        try await eventually("what the nodes agree on", pace: .milliseconds(50), isTrue)
    }

    func open(_ store: DataStore) async throws -> [String] {
        try await store.catchUp()
        return try await store.openOperations().map(\.id)
    }

    /// Stores a body in a file.
    func blob(_ length: Int, in store: DataStore) async throws -> OperationBody {
        let writer = try await store.blobWriter(expectedLength: nil)
        try await writer.append(ByteBuffer(bytes: bytes(length)))
        return try await writer.finish()
    }

    func deliver(_ id: String, at store: DataStore) async throws {
        _ = try await store.finish(
            id: id, disposition: Disposition(state: .delivered), result: nil, attempt: AttemptRecord(status: 200, sent: .yes), now: time.now
        )
    }
}
