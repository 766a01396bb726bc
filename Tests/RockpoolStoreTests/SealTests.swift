// `storage.encrypt: private`: the data that a principal reads and writes is on the disk only in sealed form, and is read back unchanged.
import Foundation
import GRDB
import HTTPTypes
import NIOCore
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct SealTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    private static func settings(_ encrypt: StorageEncryption = .private, keyFile: String? = nil) -> StorageSettings {
        var settings = storage(memory: .zero)
        (settings.encrypt, settings.keyFile) = (encrypt, keyFile)
        return settings
    }

    private func keyFile(_ name: String, _ text: String = String(repeating: "k", count: 32)) throws -> String {
        let path = "\(scratch.path)/\(name)"
        try Data("\(text)\n".utf8).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        return path
    }

    /// True if a file of the two stores contains these bytes.
    private func isOnDisk(_ bytes: some Sequence<UInt8>) -> Bool {
        (Scratch.files(under: scratch.state) + Scratch.files(under: scratch.cache)).contains {
            FileManager.default.contents(atPath: $0)?.range(of: Data(bytes)) != nil
        }
    }

    /// Secrets in queries are sealed whatever `storage.encrypt` says, and read back as they were under a key file that came or went.
    @Test(arguments: [StorageEncryption.off, .private])
    func secretsOfURLsAreSealedInEveryCase(_ encrypt: StorageEncryption) async throws {
        let path = try keyFile("key")
        var store = try openData(scratch.state, time, Self.settings(encrypt, keyFile: path))
        var new = write("a")
        new.request.target = "/notes?q=%20&token=planted-%F0&key=&sig=~sealed.planted"
        #expect(try await store.append(new).request.target == new.request.target)
        var live = write("b")
        live.request.target = new.request.target
        store.end(try await store.record(live: live))
        await store.close()
        #expect(!isOnDisk("planted".utf8))
        store = try openData(scratch.state, time, Self.settings(encrypt, keyFile: encrypt == .off ? nil : path))
        #expect(try await store.operation(id: "a")?.request.target == new.request.target)
        let stored = try await store.database.pool.read { try String.fetchOne($0, sql: "SELECT target FROM op") }
        #expect(stored?.hasPrefix("/notes?q=%20&token=~sealed.") == true && stored?.contains("&key=&sig=~sealed.") == true)
        await store.close()
    }

    /// Fields of a request and of its answer, each with a secret beside something else that may be read.
    static let secretFields = (
        request: HTTPFieldsCase(pairs: [
            ("Rockpool-Callback", Array("https://hooks.test/plain?token=planted".utf8)), ("X-Auth-Token", Array("planted x".utf8)),
            ("Destination", Array("https://ann:planted@files.test/b?q=1&sig=planted".utf8)), ("If-Match", Array("\"plain\"".utf8)),
        ]).fields,
        answer: HTTPFieldsCase(
            pairs: [
                "X-Auth-Token", "X-Api-Key", "X-Access-Token", "Authorization", "Set-Cookie", "Authentication-Info", "Acme-Secret",
            ].map { ($0, Array("planted \($0)".utf8)) } + [
                ("Location", Array("/plain?key=planted#access_token=planted".utf8)), ("ETag", Array("\"plain?sig=planted\"".utf8)),
                ("Content-Location", Array("/a?token=planted&q=1".utf8)), ("Refresh", Array("5; url=https://a.test/?token=planted".utf8)),
                ("Link", Array("<https://a.test/?page=2>; rel=next, <https://a.test/?token=planted>; rel=prev".utf8)),
                ("X-Latin", [0xE9] + Array("?token=planted".utf8) + [0xE9]),
            ]
        ).fields
    )

    /// Secrets of fields are sealed as those of targets are: the callback is called, the answer repeated, after a restart too.
    @Test(arguments: [StorageEncryption.off, .private])
    func secretsOfFieldsAreSealedInEveryCase(_ encrypt: StorageEncryption) async throws {
        let (request, answer) = Self.secretFields
        var store = try openData(scratch.state, time, Self.settings(encrypt))
        #expect(try await store.append(write("a", fields: request)).request.fields == request)
        _ = try #require(try await store.lease(id: "a", now: time.now))
        let result = OperationResult(head: ResponseHead(status: 201, fields: answer), body: [])
        _ = try await store.finish(
            id: "a", disposition: Disposition(state: .delivered), result: result, attempt: AttemptRecord(sent: .yes), now: time.now)
        // One in the file of live writes, and one in a row, which are under way at the end of this run.
        _ = try await store.record(live: write("b", fields: request, lane: "b"))
        _ = try await store.record(live: write("c", body: .inline(bytes(LiveWriteFile.valuesLimit)), fields: request, lane: "c"))
        await store.close()
        #expect(!isOnDisk("planted".utf8) && isOnDisk("plain".utf8), "the search works: it finds text that is on the disk")
        store = try openData(scratch.state, time, Self.settings(encrypt))
        for id in ["a", "b", "c"] { #expect(try await store.operation(id: id)?.request.fields == request, "\(id)") }
        #expect(try await store.operation(id: "a")?.result?.head.fields == answer)
        #expect(try await store.etag(of: 1) == "\"plain?sig=planted\"")
        #expect(!isOnDisk("planted".utf8))
        await store.close()
    }

    /// The places where a new value takes that of an accepted one, and the URLs of other tables.
    @Test func secretsOfChangesAreSealed() async throws {
        let (request, _) = Self.secretFields
        let bench = ConflictBench(time: time)
        var store = try openData(scratch.state, time, Self.settings(.off))
        try await bench.conflicted(store, "1")
        var conflict = bench.conflict("c1", of: "1")
        conflict.url += "?token=planted"
        _ = try await store.meet(conflict, decision: nil, now: time.now)
        var revision = bench.revision()
        revision.request.fields = request
        try await bench.resolve(store, "c1", as: .mine, result: nil, decision: .resend(revision), now: time.now)
        let local = LocalID.make(now: time.now, random: (1, 1))
        var create = write("2", lane: "create")
        (create.collection, create.localID) = ("/v1/notes", local)
        _ = try await store.append(create)
        let mapping = ServerMapping(id: ServerID(text: "9"), url: "https://api.example.com/v1/notes/9?token=planted")
        _ = try #require(try await store.lease(id: "2", now: time.now))
        _ = try await store.finish(
            id: "2", disposition: Disposition(state: .delivered, mapping: mapping), result: nil, attempt: AttemptRecord(sent: .yes),
            now: time.now)
        await store.close()
        #expect(!isOnDisk("planted".utf8) && isOnDisk("hooks.test".utf8))
        store = try openData(scratch.state, time, Self.settings(.off))
        #expect(try await store.operation(id: "1")?.request.fields == request)
        #expect(try await store.conflict(id: "c1")?.url == conflict.url)
        #expect(store.localIDs.mapping(of: local) == mapping)
        await store.close()
    }

    // MARK: the file format

    /// Lengths around one and two chunks.
    static let lengths = [0, 1, 65_535, 65_536, 65_537, 131_071, 131_072, 131_073, 300_000]

    @Test(arguments: lengths) func everyRangeOfASealedFileComesBack(_ length: Int) throws {
        let seal = BodySeal(installKey: Array("secret".utf8), keyFile: nil, mode: .private)
        let body = bytes(length)
        let path = "\(scratch.path)/body"
        let spool = try SpoolFile(path: path, expectedLength: Int64(length), seal: seal)
        let edges = [0, 1, 15, 65_535, 65_536, 65_537, 131_072, length / 2, length - 1, length].filter { (0...length).contains($0) }
        func expectEqual(_ read: (Range<Int64>) throws -> ByteBuffer) throws {
            for start in edges {
                for end in edges where end >= start {
                    #expect(Array(try read(Int64(start)..<Int64(end)).readableBytesView) == Array(body[start..<end]), "\(start)..<\(end)")
                }
            }
        }
        for start in stride(from: 0, to: length, by: 40_000) {
            let piece = Array(body[start..<min(start + 40_000, length)])
            try piece.withUnsafeBytes { try spool.append($0) }
            #expect(try Array(spool.read(at: Int64(start), count: piece.count).readableBytesView) == piece, "read during the write")
        }
        try spool.finish()
        try expectEqual { try spool.read(at: $0.lowerBound, count: $0.count) }
        let file = try SealedFile(path, seal)
        #expect(file.length == Int64(length) && SealedChunks.size(of: Int64(length)) == spool.length)
        try expectEqual(file.read)
        #expect(throws: SealBroken.self) {
            try SealedFile(path, BodySeal(installKey: Array("another".utf8), keyFile: nil, mode: .private)).read(0..<0)
        }
    }

    /// One flipped bit in the header, ciphertext or tag.
    @Test(arguments: [0, 9, 20, 40, 65_536 + 32 + 8, 70_000, 100_000 + 32 + 31]) func aChangedFileDoesNotOpen(at offset: Int) throws {
        let seal = BodySeal(installKey: Array("secret".utf8), keyFile: nil, mode: .private)
        let path = "\(scratch.path)/body"
        let spool = try SpoolFile(path: path, expectedLength: nil, seal: seal)
        try bytes(100_000).withUnsafeBytes { try spool.append($0) }
        try spool.finish()
        spool.release()
        var changed = try #require(FileManager.default.contents(atPath: path))
        changed[offset] ^= 1
        try changed.write(to: URL(fileURLWithPath: path))
        #expect(throws: SealBroken.self) { try SealedFile(path, seal).digest() }
    }

    // MARK: the cache

    struct Body: Sendable, CustomTestStringConvertible {
        var bytes: [UInt8]
        var fields: HTTPFields = [:]
        var testDescription: String { "\(bytes.count) bytes of \(fields)" }
    }

    static let bodies = [
        Body(bytes: Array("a letter to Ada".utf8)),
        Body(bytes: AtRestTests.json(20_000), fields: AtRestTests.jsonType),
        Body(bytes: AtRestTests.letters(700_000), fields: AtRestTests.jsonType),
        Body(bytes: RockpoolStoreTests.bytes(100_000)),
        Body(bytes: RockpoolStoreTests.bytes(2_000_000)),
    ]

    @Test(arguments: bodies, [true, false]) func aPrivateBodyIsNowhereToBeRead(_ body: Body, announced: Bool) async throws {
        var data = try openData(scratch.state, time, Self.settings())
        var store = try openCache(scratch.cache, time, Self.settings(), seal: data.seal)
        let own = try #require(
            try await store.put("/a", body.bytes, at: time.now, fields: body.fields, announced: announced, identity: "ada"))
        #expect(own.bodyCoding.isSealed)
        #expect(try await store.bytes(of: own) == body.bytes)
        await store.close()
        await data.close()
        #expect(!isOnDisk(body.bytes.prefix(15)) && isOnDisk(Array("ada".utf8)), "the search works: it finds text that is on the disk")

        // The next run reads it, whatever its setting for new bodies.
        data = try openData(scratch.state, time, Self.settings(.off))
        store = try openCache(scratch.cache, time, Self.settings(.off), seal: data.seal)
        let found = try #require(try await store.lookup(key("/a", identity: "ada")).first)
        #expect(try await store.bytes(of: found) == body.bytes)
        #expect(await store.scrub(now: time.now).isClean)
        // The shared copy of the same bytes is a separate body.
        let shared = try #require(try await store.put("/a", body.bytes, at: time.now, fields: body.fields))
        #expect(!shared.bodyCoding.isSealed)
        #expect(try await store.bytes(of: shared) == body.bytes)
        await store.close()
        await data.close()
    }

    /// With another key, no byte of a sealed body can be read: for the client this is a miss.
    @Test(arguments: bodies) func whatAnotherKeySealedIsAMiss(_ body: Body) async throws {
        let first = BodySeal(installKey: [1], keyFile: nil, mode: .private)
        var store = try openCache(scratch.cache, time, Self.settings(), seal: first)
        try await store.put("/a", body.bytes, at: time.now, fields: body.fields, identity: "ada")
        await store.close()
        store = try openCache(scratch.cache, time, Self.settings(), seal: BodySeal(installKey: [2], keyFile: nil, mode: .private))
        let entry = try #require(try await store.lookup(key("/a", identity: "ada")).first)
        #expect(try await store.bytes(of: entry) == nil)
        #expect(try await store.lookup(key("/a", identity: "ada")).isEmpty)
        await store.close()
    }

    @Test func aPrivateBodyThatWasWrittenInTheOpenIsNotStored() async throws {
        let store = try openCache(scratch.cache, time, Self.settings(), seal: BodySeal(installKey: [1], keyFile: nil, mode: .private))
        let writer = try #require(await store.beginWrite(expectedLength: 3, category: .assets))
        #expect(try await writer.append(all: [1, 2, 3]))
        let response = StoredResponse(
            head: ResponseHead(status: 200), requestTime: time.now, responseTime: time.now, bodyLength: 0, category: "assets")
        await #expect(throws: UnsealedBody.self) {
            try await store.commit(writer, key: key("/a", identity: "ada"), response: response)
        }
        await store.close()
    }

    // MARK: the outbox

    private static let secret = "the diagnosis is gout"

    private static func queued(_ id: String, body: OperationBody = .inline(Array(secret.utf8))) -> QueuedWriteDraft {
        var new = write(id, body: body, clientKey: "key-\(id)", principal: "ada")
        new.base = Conflict.Side(body: Array("\(secret), it was said before".utf8), contentType: nil, etag: nil)
        return new
    }

    /// Stores an operation with its body in the row, one with its body in a file, a response, and a base.
    private func fill(_ store: DataStore) async throws {
        _ = try await store.append(Self.queued("1"))
        let writer = try await store.blobWriter(expectedLength: nil)
        try await writer.append(ByteBuffer(bytes: Array(Self.secret.utf8) + bytes(1_500_000)))
        _ = try await store.append(Self.queued("2", body: try await writer.finish()))
        _ = try #require(try await store.lease(id: "1", now: time.now))
        _ = try await store.finish(
            id: "1", disposition: Disposition(state: .delivered),
            result: OperationResult(head: ResponseHead(status: 200), body: Array(Self.secret.utf8)), attempt: AttemptRecord(sent: .yes),
            now: time.now)
    }

    private func expectKept(_ store: DataStore) async throws {
        let first = try #require(try await store.operation(id: "1"))
        #expect(first.body == .inline(Array(Self.secret.utf8)) && first.result?.body == Array(Self.secret.utf8))
        let second = try #require(try await store.operation(id: "2"))
        #expect(try store.content(of: second.body).bytes() == Array(Self.secret.utf8) + bytes(1_500_000))
        #expect(try await store.base(of: 2)?.body.starts(with: Array(Self.secret.utf8)) == true)
        let asked = try await store.operation(
            clientKey: "key-1", principal: "ada", upstream: "notes", fingerprint: Self.queued("1").fingerprint)
        #expect(asked?.isSame == true)
        #expect(await store.scrub(now: time.now).isClean)
    }

    private var stopped: StorageSettings {
        var settings = Self.settings()
        settings.stateDir = scratch.state
        return settings
    }

    @Test func queuedBodiesAreNowhereToBeRead() async throws {
        var store = try openData(scratch.state, time, Self.settings())
        try await fill(store)
        try await expectKept(store)
        await store.close()
        #expect(!isOnDisk(Self.secret.utf8) && isOnDisk("key-1".utf8), "the search works: it finds text that is on the disk")
        #expect(!isOnDisk(Self.queued("1").fingerprint), "a plain fingerprint would let an attacker test guesses of the body")
        let seal = try #require(BodySeal.kept(stopped))
        #expect(await DataStore.scrubWhileStopped(scratch.state, seal: seal, now: time.now).isClean)
        for encrypt in StorageEncryption.allCases {
            store = try openData(scratch.state, time, Self.settings(encrypt))
            try await expectKept(store)
            await store.close()
        }
        let target = "\(scratch.path)/recovered"
        let report = try await DataStore.recover(from: scratch.state, into: target, seal: seal)
        #expect(report.blobs == 1 && report.lostBlobs.isEmpty && report.errors.isEmpty, "\(report)")
        store = try openData(target, time, Self.settings())
        try await expectKept(store)
        await store.close()
    }

    @Test func aKeyFileThatIsMissingStopsTheStart() async throws {
        let path = try keyFile("key")
        var store = try openData(scratch.state, time, Self.settings(keyFile: path))
        try await fill(store)
        await store.close()
        let unknown = DataStoreError.unknownKey(path: "\(scratch.state)/data.sqlite")
        #expect(throws: unknown) { try openData(scratch.state, time, Self.settings()) }
        let other = try keyFile("other", String(repeating: "o", count: 32))
        #expect(throws: unknown) { try openData(scratch.state, time, Self.settings(keyFile: other)) }
        store = try openData(scratch.state, time, Self.settings(.off, keyFile: path))
        try await expectKept(store)
        await store.close()
    }

    @Test func aKeyThatCanBeGuessedOrReadIsRefused() throws {
        let short = try keyFile("short", String(repeating: "k", count: BodySeal.leastKeyBytes - 1))
        #expect(throws: DataStoreError.shortKey(path: short)) { try openData(scratch.state, time, Self.settings(keyFile: short)) }
        let open = try keyFile("open")
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: open)
        #expect(throws: DataStoreError.readableByOthers(path: open)) { try openData(scratch.state, time, Self.settings(keyFile: open)) }
    }

    /// An unsealed body that begins with the seal's magic bytes is sealed itself, so that it is never mistaken for a sealed one.
    @Test func aBodyThatLooksSealedComesBack() async throws {
        let store = try openData(scratch.state, time, Self.settings(.off))
        let body = BodySeal.magic + Array("but is not".utf8)
        _ = try await store.append(write("1", body: .inline(body)))
        #expect(try await store.operation(id: "1")?.body == .inline(body))
        await store.close()
    }
}
