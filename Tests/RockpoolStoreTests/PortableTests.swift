// Lines of an export are taken into another outbox: the same operations, under the same ids, once (docs/outbox.md#import).
import Foundation
import GRDB
import HTTPTypes
import NIOCore
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct PortableTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    private func outbox(_ name: String, _ encrypt: StorageEncryption = .off) throws -> DataStore {
        var settings = storage()
        settings.encrypt = encrypt
        return try openData("\(scratch.path)/\(name)", time, settings)
    }

    /// The lines of an export of everything, by way of their text.
    private func export(_ store: DataStore, withSecrets: Bool = true) async throws -> [JSONValue] {
        var lines: [JSONValue] = []
        for light in try await store.operations(OperationFilter(states: Set(OperationState.allCases))).items {
            let whole = try #require(try await store.operation(id: light.id))
            let line = try await store.line(of: whole.shown(withSecrets: withSecrets), withSecrets: withSecrets)
            lines.append(try JSONValue.parse(line.serialized()))
        }
        return lines
    }

    private func portable(_ lines: [JSONValue]) throws -> [PortableOperation] { try lines.map { try PortableOperation($0) } }

    private func finish(_ id: String, _ disposition: Disposition, in store: DataStore) async throws {
        _ = try await store.lease(id: id, now: time.now)
        _ = try await store.finish(
            id: id, disposition: disposition, result: OperationResult(head: ResponseHead(status: 422), body: [1]),
            attempt: AttemptRecord(status: 422, sent: .yes), now: time.now)
    }

    /// The facts of an operation that are the same in both outboxes.
    private func facts(_ id: String, in store: DataStore) async throws -> [String] {
        var operation = try #require(try await store.operation(id: id))
        let needs = try await store.operations(sequences: Array(operation.needs)).map(\.id).sorted()
        let attempts = try await store.attempts(of: operation).map { "\($0.number) \($0.status ?? 0) \($0.error ?? "")" }
        let body = try await store.bytes(of: operation.body)
        let base = try await store.base(of: operation.sequence)
        (operation.sequence, operation.place, operation.needs, operation.follows, operation.body) = (0, 0, [], [], .none)
        return ["\(operation)", "\(needs)", "\(attempts)", "\(Digest.hex(body))", "\(String(describing: base))"]
    }

    @Test(arguments: [(StorageEncryption.off, StorageEncryption.private), (.private, .off)])
    func everythingOfAnOperationComesAlong(_ from: StorageEncryption, _ to: StorageEncryption) async throws {
        let (a, b) = (try outbox("a", from), try outbox("b", to))
        // The spelling of JSON, and a body in a file.
        let type: HTTPFields = [.contentType: "application/json"]
        var first = write("1", body: .inline(Array(#"{ "a":  1.0 }"#.utf8)), fields: type, clientKey: "mine", principal: "me")
        first.base = Conflict.Side(body: [7, 8], contentType: "text/plain", etag: "\"v1\"")
        first.baseETag = "\"v1\""
        _ = try await a.append(first)
        let writer = try await a.blobWriter(expectedLength: nil)
        try await writer.append(.init(bytes: bytes(2_000_000)))
        var second = write("2", body: try await writer.finish(), lane: "other", principal: "me")
        second.dependsOn = ["1"]
        _ = try await a.append(second)
        _ = try await a.append(write("3", lane: "dead"))
        try await finish("3", Disposition(state: .dead, reason: .rejected), in: a)
        _ = try await a.append(write("4", lane: "done"))
        try await finish("4", Disposition(state: .delivered), in: a)
        let lines = try await export(a)
        let taken = try await b.takeIn(portable(lines))
        #expect(taken.operations.map(\.id) == ["1", "2", "3", "4"] && taken.there == 0 && taken.repeated == 0)
        // Both stores have made their own secret.
        #expect(taken.strangers == 2)
        for id in ["1", "2", "3", "4"] { #expect(try await facts(id, in: a) == facts(id, in: b), "\(id)") }
        // Again: nothing changes.
        let again = try await b.takeIn(portable(lines))
        #expect(again.operations.isEmpty && again.there == 4)
        #expect(try await b.operations(OperationFilter(states: Set(OperationState.allCases))).items.count == 4)
        // The client's key names its write, and an equal request is the same.
        await #expect(throws: DataStoreError.duplicateKey(id: "1")) {
            try await b.append(write("5", clientKey: "mine", principal: "me"))
        }
        let found = try await b.operation(clientKey: "mine", principal: "me", upstream: "notes", fingerprint: first.fingerprint)
        #expect(found?.isSame == true)
        await a.close()
        await b.close()
    }

    @Test func aConflictComesWithItsVersions() async throws {
        let bench = ConflictBench(time: time)
        let (a, b) = (try outbox("a"), try outbox("b", .private))
        try await bench.conflicted(a, "1")
        _ = try await a.meet(bench.conflict("c1", of: "1"), decision: nil, now: time.now)
        _ = try await b.append(write("other"))
        _ = try await b.takeIn(portable(export(a)))
        #expect(try await b.operation(id: "1")?.state == .conflicted)
        var there = try await b.conflict(id: "c1")
        // Each outbox counts for itself.
        there?.sequence = 1
        #expect(try await there == a.conflict(id: "c1"))
        await a.close()
        await b.close()
    }

    @Test func whatWasBeingSentIsUncertain() async throws {
        let (a, b) = (try outbox("a"), try outbox("b"))
        _ = try await a.append(write("1"))
        _ = try await a.lease(id: "1", now: time.now)
        _ = try await b.takeIn(portable(export(a)))
        let operation = try #require(try await b.operation(id: "1"))
        #expect(operation.state == .uncertain && operation.reason == .crashed && operation.lostAt != nil)
        await a.close()
        await b.close()
    }

    /// Two outboxes took one request of a client: one effect comes of it, and what needs it waits for that.
    @Test func oneKeyIsOneWrite() async throws {
        let (a, b) = (try outbox("a"), try outbox("b"))
        _ = try await a.append(write("1", clientKey: "mine", principal: "me"))
        var next = write("2", lane: "next", principal: "me")
        next.dependsOn = ["1"]
        _ = try await a.append(next)
        _ = try await a.append(write("3", body: .inline([1]), clientKey: "other", principal: "me"))
        let here = try await b.append(write("here", clientKey: "mine", principal: "me"))
        _ = try await b.append(write("unequal", body: .inline([2]), clientKey: "other", principal: "me"))
        let taken = try await b.takeIn(portable(export(a)))
        #expect(taken.operations.map(\.state) == [.superseded, .pending, .pending] && taken.repeated == 1)
        #expect(try await b.operation(id: "2")?.needs == [here.sequence])
        await a.close()
        await b.close()
    }

    @Test func aFaultNamesItsOperationAndChangesNothing() async throws {
        let (a, b) = (try outbox("a"), try outbox("b"))
        var first = write("1")
        first.request.target = "/v1/notes?access_token=secret"
        _ = try await a.append(first)
        var second = write("2", lane: "other")
        second.dependsOn = ["1"]
        _ = try await a.append(second)
        let lines = try await export(a)
        let shown = try await export(a, withSecrets: false)
        #expect(shown.allSatisfy { !"\($0)".contains("secret") })
        var newer = lines[0]
        var op = try PortableOperation(newer).row
        op["invented"] = 1.databaseValue
        newer["row"]?["op"] = .string(Base64.encode(op.encoded))
        var short = lines[0]
        short["body"] = "x"
        for (bad, id, words) in [
            ([shown[0]], "1", "--with-secrets"), ([lines[1]], "2", "it needs 1"), ([newer], "1", "newer version"),
            ([short], "1", "not whole"),
            ([["id": "1"]], "1", "no operation"),
        ] as [([JSONValue], String, String)] {
            await #expect {
                try await b.takeIn(portable([try renamed(lines[0])] + bad))
            } throws: { error in
                (error as? PortableOperation.Fault).map { $0.id == id && $0.why.contains(words) } ?? false
            }
            #expect(try await b.openOperations().isEmpty, "\(words)")
        }
        await a.close()
        await b.close()
    }

    /// The lines and the rows in them hold no credential, and secrets of URLs only where they are asked for; then they come along.
    @Test(arguments: [false, true]) func secretsOfFieldsStayOrComeAlong(withSecrets: Bool) async throws {
        let (request, answer) = SealTests.secretFields
        let (a, b) = (try outbox("a"), try outbox("b"))
        _ = try await a.append(write("1", fields: request))
        let result = OperationResult(head: ResponseHead(status: 422, fields: answer), body: [])
        _ = try await a.append(write("2", fields: request, lane: "dead"))
        _ = try await a.lease(id: "2", now: time.now)
        _ = try await a.finish(
            id: "2", disposition: Disposition(state: .dead, reason: .rejected), result: result, attempt: AttemptRecord(sent: .yes),
            now: time.now)
        let lines = try await export(a, withSecrets: withSecrets)
        for line in lines {
            let portable = try PortableOperation(line)
            let rows = ([portable.row] + portable.related.map(\.row)).map { String(decoding: $0.encoded, as: UTF8.self) }
            for text in rows + [String(decoding: line.serialized(), as: UTF8.self)] {
                #expect(!text.contains("planted ") && (withSecrets || !text.contains("planted")), "\(text)")
            }
        }
        if withSecrets {
            #expect(try await b.takeIn(portable(lines)).operations.count == 2)
            let (asked, given) = (SecretFields.removed(from: request), SecretFields.removed(from: answer))
            for id in ["1", "2"] { #expect(try await b.operation(id: id)?.request.fields == asked, "\(id)") }
            #expect(try await b.operation(id: "2")?.result?.head.fields == given)
        } else {
            await #expect {
                try await b.takeIn(portable([lines[0]]))
            } throws: { ($0 as? PortableOperation.Fault)?.why.contains("--with-secrets") == true }
        }
        await a.close()
        await b.close()
    }

    /// A line of another operation, which is whole.
    private func renamed(_ line: JSONValue) throws -> JSONValue {
        var (line, row) = (line, try PortableOperation(line).row)
        row["id"] = "whole".databaseValue
        line["id"] = "whole"
        line["row"]?["op"] = .string(Base64.encode(row.encoded))
        return line
    }
}
