// Proofs, sealed credentials, and operations that are renamed with their identity (docs/caching.md#partitions *Identity*,
// docs/outbox.md#credentials).
import Foundation
import GRDB
import HTTPTypes
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct IdentityStoreTests {
    let scratch: Scratch
    let time = ManualTime()
    let store: DataStore

    init() throws {
        scratch = try Scratch()
        store = try openData(scratch.state, time)
    }

    private func name(_ text: String) -> String { store.identityName(text.utf8) }

    private func sealed(
        _ principal: String = "anna", _ secret: String = "Bearer s3cret-bytes", upstream: String = "notes"
    ) -> SealedCredential {
        SealedCredential(principal: principal, upstream: upstream, secrets: [.authorization: secret, .cookie: "a=1"], at: time.now)
    }

    /// Returns the principal and lane of every operation.
    private func owners(_ states: Set<OperationState> = Set(OperationState.allCases)) async throws -> [String] {
        try await store.operations(OperationFilter(states: states)).items.map { "\($0.principal ?? "-") \($0.lane)" }
    }

    // MARK: proofs

    @Test func aProofOutlivesTheProcess() async throws {
        let proved = ProvedCredential(name: name("t"), principal: name("anna"), at: time.now)
        try await store.keep(proved)
        await store.close()
        let later = try openData(scratch.state, time)
        #expect(try later.provedCredentials() == [proved])
        await later.close()
    }

    @Test func aProofIsRenewedAndTheOldestGo() async throws {
        for number in 0..<3 {
            time.advance(.seconds(1))
            try await store.keep(ProvedCredential(name: name("\(number)"), principal: "p", at: time.now))
        }
        time.advance(.seconds(1))
        try await store.keep(ProvedCredential(name: name("0"), principal: "p", at: time.now))
        #expect(try store.provedCredentials().map(\.name) == ["1", "2", "0"].map(name))
        try await store.queue.commit { db in
            for number in 0..<DataStore.provedLimit {
                try db.execute(
                    sql: "INSERT INTO proved VALUES (?, 'p', ?)", arguments: [Data("\(number)".utf8), number])
            }
        }
        time.advance(.seconds(1))
        try await store.keep(ProvedCredential(name: name("new"), principal: "p", at: time.now))
        let kept = try store.provedCredentials()
        #expect(kept.count == DataStore.provedLimit && kept.suffix(4).map(\.name) == ["1", "2", "0", "new"].map(name))
    }

    // MARK: operations

    @Test func operationsFollowTheirIdentityIntoItsLanes() async throws {
        let (token, anna) = (name("token"), name("anna"))
        for new in [
            write("1", lane: "notes * \(token)", principal: token), write("2", lane: "notes /n \(token)", principal: token),
            write("3", lane: "notes /n/1", principal: token), write("4", lane: "notes * \(anna)", principal: anna),
            write("5", lane: "notes * bob", principal: "bob"), write("6", lane: "notes *"),
        ] { _ = try await store.append(new) }
        #expect(try await store.keep(ProvedCredential(name: token, principal: anna, at: time.now)) == 3)
        #expect(
            try await owners() == [
                "\(anna) notes * \(anna)", "\(anna) notes /n \(anna)", "\(anna) notes /n/1", "\(anna) notes * \(anna)",
                "bob notes * bob", "- notes *",
            ])
        #expect(try await store.rename(principal: anna, to: anna) == 0)
        #expect(try await store.rename(principal: "", to: anna) == 0, "operations without a principal are not renamed")
    }

    @Test func whatHasEndedKeepsItsNameUnlessItsClientMayAskAgain() async throws {
        for new in [write("1", principal: "t"), write("2", clientKey: "k", principal: "t")] {
            _ = try await store.append(new)
            _ = try await store.transition(id: new.id, to: .cancelled, reason: .cancelled, from: [.pending], now: time.now)
        }
        #expect(try await store.rename(principal: "t", to: "anna") == 1)
        #expect(try await owners([.cancelled]) == ["t notes", "anna notes"])
        #expect(try await store.operation(clientKey: "k", principal: "anna", upstream: "notes")?.operation.id == "2")
    }

    /// The old and the new token have used the same client key: both operations are sent with it, and the key maps to the first operation.
    @Test func aKeyThatBothHaveUsedStandsForTheFirst() async throws {
        _ = try await store.append(write("1", clientKey: "k", principal: "anna"))
        _ = try await store.append(write("2", clientKey: "k", principal: "t"))
        #expect(try await store.rename(principal: "t", to: "anna") == 1)
        let operations = try await store.operations().items
        #expect(operations.map(\.principal) == ["anna", "anna"] && operations.map(\.idempotencyKey) == ["k", "k"])
        #expect(try await store.operation(clientKey: "k", principal: "anna", upstream: "notes")?.operation.id == "1")
    }

    // MARK: sealed

    @Test func aSealedCredentialComesBackAndIsNowhereToBeRead() async throws {
        try await store.seal(sealed())
        #expect(try store.sealedCredentials(of: ["notes"], now: time.now) == [sealed()])
        #expect(!holds("s3cret-bytes") && holds("anna"), "the search works: it finds text that is on the disk")
        await store.close()
        let later = try openData(scratch.state, time)
        #expect(try later.sealedCredentials(of: ["notes"], now: time.now).first?.secrets == sealed().secrets)
        await later.close()
    }

    private func holds(_ text: String) -> Bool {
        Scratch.files(under: scratch.state).contains { FileManager.default.contents(atPath: $0)?.range(of: Data(text.utf8)) != nil }
    }

    @Test func theNewestReplacesTheOneBefore() async throws {
        try await store.seal(sealed())
        try await store.seal(sealed("anna", "Bearer newer"))
        #expect(try store.sealedCredentials(of: ["notes"], now: time.now).map { $0.secrets[.authorization] } == ["Bearer newer"])
        try await store.unseal(principal: "anna")
        #expect(try store.sealedCredentials(of: ["notes"], now: time.now).isEmpty)
    }

    @Test func whatMayNotBeKeptGoes() async throws {
        try await store.seal(sealed("anna"))
        try await store.seal(sealed("bob", upstream: "others"))
        #expect(try store.sealedCredentials(of: ["notes"], now: time.now).map(\.principal) == ["anna"])
        #expect(try store.sealedCredentials(of: ["notes", "others"], now: time.now).map(\.principal) == ["anna"], "bob's was deleted")
        time.advance(DataStore.sealedFor - .milliseconds(1))
        #expect(try store.sealedCredentials(of: ["notes"], now: time.now).count == 1)
        time.advance(.milliseconds(1))
        #expect(try store.sealedCredentials(of: ["notes"], now: time.now).isEmpty)
    }

    @Test func cleanupTakesWhatNothingHasUsed() async throws {
        try await store.seal(sealed())
        for (span, count) in [(DataStore.sealedFor - .milliseconds(1), 1), (.milliseconds(1), 0)] {
            time.advance(span)
            _ = await store.cleanup(CleanupOptions(), settings: CleanupSettings(), now: time.now)
            #expect(try await store.database.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM credential") } == count)
        }
    }

    /// A sealed credential moved to another row or opened with another key does not decrypt, and is deleted.
    @Test(arguments: ["principal = 'bob'", "sealed = zeroblob(60)", "sealed = x'00'"])
    func whatWasTamperedWithDoesNotOpen(change: String) async throws {
        try await store.seal(sealed())
        try await store.queue.commit { try $0.execute(sql: "UPDATE credential SET \(change)") }
        #expect(try store.sealedCredentials(of: ["notes"], now: time.now).isEmpty)
        #expect(try await store.database.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM credential") } == 0)
    }

    // MARK: the owner's secret file

    @Test func aPrivateFileIsReadOnlyWhenItIsPrivate() throws {
        let path = "\(scratch.path)/token"
        try Data("\n r3fresh \n".utf8).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
        #expect(throws: DataStoreError.self) { try PrivateFile.text(path) }
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        #expect(try PrivateFile.text(path) == "r3fresh")
        #expect(throws: (any Error).self) { try PrivateFile.text("\(path)-none") }
    }
}
