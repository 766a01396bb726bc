// The outbox on disk: a write is stored completely or not at all, and only legal transitions are possible (docs/outbox.md#files–§1.3).
import Foundation
import GRDB
import HTTPTypes
import NIOCore
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct DataStoreTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    /// The live attempt lost its response before the write was queued; a replay that later fails to connect does not reset that state
    /// (docs/outbox.md#keys).
    @Test func theKeysClockRunsSinceTheLiveAttempt() async throws {
        let store = try openData(scratch.state, time)
        let sent = time.now - .seconds(3)
        var new = write("1")
        new.firstSentAt = sent
        new.lastError = "connection_terminated"
        _ = try await store.append(new)
        _ = try await store.lease(id: "1", now: time.now)
        let finished = try await store.finish(
            id: "1", disposition: Disposition(state: .pending, nextAttemptAt: time.now, countsAsAnswered: false), result: nil,
            attempt: AttemptRecord(error: "connection_refused", sent: .no), now: time.now)
        #expect(finished.firstSentAt == sent)
        #expect(try await store.attempts(of: finished).map(\.sent) == [.maybe, .no])
        await store.close()
    }

    /// An operation given up later does not move the span away from the deliveries.
    @Test func theLastDeliveriesAreThoseBeforeTheLatestDelivery() async throws {
        let store = try openData(scratch.state, time)
        for (id, span) in [("1", TimeSpan.minutes(2)), ("2", .seconds(30)), ("3", .minutes(10)), ("4", .zero)] {
            _ = try await store.append(write(id, lane: id))
            if id == "4" {
                _ = try await store.transition(id: id, to: .cancelled, reason: .discarded, from: [.pending], now: time.now)
            } else {
                _ = try await store.lease(id: id, now: time.now)
                _ = try await store.finish(
                    id: id, disposition: Disposition(state: .delivered), result: nil, attempt: AttemptRecord(status: 200, sent: .yes),
                    now: time.now)
            }
            time.advance(span)
        }
        #expect(try await store.lastDelivered(within: .minutes(1)).map(\.id) == ["2", "3"])
        await store.close()
    }

    @Test func anAttemptWhoseOutcomeWasLostStaysMaybe() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(write("1"))
        _ = try await store.lease(id: "1", now: time.now)
        _ = try await store.transition(id: "1", to: .uncertain, reason: .lostAnswer, from: [.inflight], now: time.now)
        _ = try await store.transition(id: "1", to: .pending, reason: nil, from: [.uncertain], now: time.now)
        _ = try await store.lease(id: "1", now: time.now)
        let finished = try await store.finish(
            id: "1", disposition: Disposition(state: .pending, nextAttemptAt: time.now, countsAsAnswered: false), result: nil,
            attempt: AttemptRecord(sent: .no), now: time.now)
        #expect(finished.firstSentAt != nil)
        #expect(try await store.attempts(of: finished).map(\.sent) == [.maybe, .no])
        await store.close()
    }

    /// Uploads answered by a live attempt leave no files behind.
    @Test func aDiscardedBlobGoesAtOnceUnlessSomebodyElseNeedsIt() async throws {
        let store = try openData(scratch.state, time)
        func blob() async throws -> OperationBody {
            let writer = try await store.blobWriter(expectedLength: nil)
            try await writer.append(ByteBuffer(bytes: bytes(1_200_000)))
            return try await writer.finish()
        }
        _ = try await store.append(write("1", body: try await blob()))
        store.discard(try await blob())
        try await store.removeUnnamed([])
        try await store.queue.outside { _ in }
        #expect(Scratch.files(under: "\(scratch.state)/blobs").count == 1)
        _ = try await store.transition(id: "1", to: .cancelled, reason: .discarded, from: [.pending], now: time.now)
        await store.close()
    }

    /// The operation that `append` returns is equal to the one in its row.
    @Test func whatIsTakenIsWhatIsRead() async throws {
        let store = try openData(scratch.state, time)
        var first = write("1", clientKey: "mine", principal: "me")
        first.localID = LocalID.make(now: time.now, random: (1, 2))
        (first.collection, first.entityID, first.baseETag, first.noMerge) = ("/n", "x", "\"a\"", true)
        (first.firstSentAt, first.lastError, first.state, first.reason) = (time.now, "connection_terminated", .uncertain, .lostAnswer)
        var second = write("2", body: .inline([1, 2]))
        (second.dependsOn, second.group, second.priority, second.expiresAt) = (["1"], "g", -5, time.now + .hours(1))
        second.request.fields[.authorization] = "Bearer secret"
        var third = write("3")
        third.share = .unproved
        for new in [first, second, third] {
            let taken = try await store.append(new)
            #expect(try await store.operation(id: new.id) == taken)
        }
        await store.close()
    }

    @Test func theWriterRunsWithFullSynchronous() async throws {
        let store = try openData(scratch.state, time)
        #expect(try await store.queue.outside { try Int.fetchOne($0, sql: "PRAGMA synchronous") } == 2)
        await store.close()
    }

    @Test(arguments: [(TimeSpan.hours(1), true), (.seconds(2), false)] as [(TimeSpan, Bool)])
    func aClockThatWasAheadInTheLastRunHoldsNothingUp(by span: TimeSpan, isSetBack: Bool) async throws {
        let now = time.now
        time.advance(span)
        let store = try openData(scratch.state, time)
        _ = try await store.append(write("1"))
        await store.close()
        time.advance(.zero - span)
        let again = try openData(scratch.state, time)
        #expect(try await again.openOperations().first?.nextAttemptAt == (isSetBack ? now : now + span))
        await again.close()
    }

    @Test func concurrentWritesAreAllThereAfterAKill() async throws {
        let store = try openData(scratch.state, time)
        let sequences = try await withThrowingTaskGroup(of: Int64.self) { tasks in
            for n in 0..<64 { tasks.addTask { try await store.append(write("\(n)")).sequence } }
            return try await tasks.reduce(into: Set<Int64>()) { $0.insert($1) }
        }
        #expect(sequences.count == 64)
        let crashed = try scratch.copy(scratch.state, to: "crashed")
        await store.close()
        let again = try openData(crashed, time)
        let open = try await again.openOperations()
        #expect(Set(open.map(\.id)) == Set((0..<64).map(String.init)))
        #expect(open.map(\.sequence) == open.map(\.sequence).sorted())
        await again.close()
    }

    @Test func anOperationComesBackAsItWasWithoutCredentials() async throws {
        let store = try openData(scratch.state, time)
        var fields: HTTPFields = [.contentType: "application/json", .ifMatch: "\"7\""]
        let kept = fields
        fields[.authorization] = "Bearer secret-token"
        fields[.cookie] = "session=secret-token"
        fields[.proxyAuthorization] = "Basic secret-token"
        var new = write("1", body: .inline(bytes(1000)), fields: fields, clientKey: "mine", principal: "anna")
        new.expiresAt = time.now + .hours(1)
        new.priority = -3
        let taken = try await store.append(new)
        let found = try #require(try await store.operation(id: "1"))
        #expect(found == taken)
        #expect(found.request == RequestHead(method: .post, origin: origin, target: "/v1/notes?a=1", fields: kept))
        #expect(found.body == .inline(bytes(1000)))
        #expect(found.principal == "anna" && found.keyIsClients && found.priority == -3 && found.expiresAt == new.expiresAt)
        await store.close()
        for file in Scratch.files(under: scratch.state) {
            let content = try Data(contentsOf: URL(fileURLWithPath: file))
            #expect(content.range(of: Data("secret-token".utf8)) == nil, "\(file)")
        }
    }

    @Test func aClientKeyOpensTheDoorOnce() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(write("1", clientKey: "k", principal: "anna"))
        await #expect(throws: DataStoreError.duplicateKey(id: "1")) {
            try await store.append(write("2", clientKey: "k", principal: "anna"))
        }
        _ = try await store.append(write("3", clientKey: "k", principal: "otto"))
        _ = try await store.append(write("4", clientKey: "k"))
        await #expect(throws: DataStoreError.duplicateKey(id: "4")) { try await store.append(write("5", clientKey: "k")) }
        // Clients without a credential have keys for each upstream, whatever these are named.
        for (id, upstream, key) in [("6", "other", "k"), ("7", "notes k", "k"), ("8", "notes", "k k")] {
            var elsewhere = write(id, clientKey: key)
            elsewhere.upstream = upstream
            _ = try await store.append(elsewhere)
            #expect(try await store.operation(clientKey: key, principal: nil, upstream: upstream)?.operation.id == id)
        }
        #expect(try await store.operation(clientKey: "k", principal: nil, upstream: "notes")?.operation.id == "4")
        let same = write("x", clientKey: "k")
        for (body, isSame) in [(same.body, true), (.inline([1]), false)] {
            let fingerprint = QueuedWriteDraft.fingerprint(same.request, body: body)
            let match = try #require(
                try await store.operation(clientKey: "k", principal: "anna", upstream: "notes", fingerprint: fingerprint))
            #expect(match.operation.id == "1" && match.isSame == isSame)
        }
        #expect(try await store.operation(clientKey: "other", principal: "anna", upstream: "notes") == nil)
        await store.close()
    }

    /// Copies of one source to several places are not equal.
    @Test(arguments: ["Destination", "Depth", "Overwrite", "X-Amz-Copy-Source"]) func fieldsThatSayWhatIsWrittenAreCompared(
        name: String
    ) throws {
        var head = write("1").request
        let name = try #require(HTTPField.Name(name))
        let prints = [nil, "/a", "/b"].map { value in
            head.fields[name] = value
            return QueuedWriteDraft.fingerprint(head, body: .none)
        }
        #expect(Set(prints).count == 3)
    }

    @Test func aLeaseIsGivenOnceAndItsOutcomeKept() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(write("1"))
        let leased = try #require(try await store.lease(id: "1", now: time.now))
        #expect(leased.state == .inflight && leased.firstSentAt == time.now)
        #expect(try await store.lease(id: "1", now: time.now) == nil)
        time.advance(.seconds(2))
        let answer = OperationResult(head: ResponseHead(status: 201, fields: [.location: "/v1/notes/9"]), body: Array("{}".utf8))
        let done = try await store.finish(
            id: "1", disposition: Disposition(state: .delivered, reason: .accepted), result: answer,
            attempt: AttemptRecord(isFreshConnection: true, bytesSent: 10, bytesTotal: 10, status: 201, sent: .yes), now: time.now)
        #expect(done.state == .delivered && done.result == answer && done.endedAt == time.now && done.answeredAttempts == 1)
        #expect(try await store.attempts(of: done).map(\.status) == [201])
        #expect(try await store.deliveredTotal() == 1)
        #expect(try await store.openOperations().isEmpty)
        #expect(try await store.log().map(\.event) == ["delivered", "pending"])
        await store.close()
    }

    @Test(arguments: [(TransferFailure.Sent.no, false), (.maybe, true), (.yes, true)])
    func theKeysClockStartsWithTheFirstByteSent(_ sent: TransferFailure.Sent, starts: Bool) async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(write("1"))
        _ = try await store.lease(id: "1", now: time.now)
        let next = time.now + .seconds(5)
        let after = try await store.finish(
            id: "1", disposition: Disposition(state: .pending, nextAttemptAt: next, countsAsAnswered: false, detail: "refused"),
            result: nil, attempt: AttemptRecord(error: "refused", sent: sent), now: time.now)
        #expect((after.firstSentAt != nil) == starts)
        #expect(after.networkAttempts == 1 && after.answeredAttempts == 0)
        #expect(after.nextAttemptAt == next && after.lastError == "refused")
        await store.close()
    }

    @Test(arguments: OperationState.allCases, OperationState.allCases)
    func theTriggerHoldsTheTableOfTransitions(_ from: OperationState, _ to: OperationState) async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(write("1"))
        try await store.queue.commit { db in
            try db.execute(sql: "DROP TRIGGER op_transition; UPDATE op SET state = '\(from.rawValue)'")
            try DataSchema.guardTransitions(in: db)
        }
        let attempt: @Sendable () async throws -> Void = {
            try await store.queue.commit { try $0.execute(sql: "UPDATE op SET state = ?", arguments: [to.rawValue]) }
        }
        if from == to || OperationMachine.permits(from: from, to: to) {
            try await attempt()
        } else {
            await #expect(throws: DatabaseError.self) { try await attempt() }
        }
        await store.close()
    }

    @Test func transitionsSayWhyTheyAreRefused() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(write("1"))
        await #expect(throws: DataStoreError.illegal(from: .pending, to: .cancelled)) {
            try await store.transition(id: "1", to: .cancelled, reason: nil, from: [.dead], now: time.now)
        }
        await #expect(throws: DataStoreError.illegal(from: .pending, to: .delivered)) {
            try await store.transition(id: "1", to: .delivered, reason: nil, from: [.pending], now: time.now)
        }
        await #expect(throws: DataStoreError.notFound(id: "2")) {
            try await store.transition(id: "2", to: .cancelled, reason: nil, from: [.pending], now: time.now)
        }
        await #expect(throws: DataStoreError.illegal(from: .pending, to: .delivered)) {
            try await store.finish(
                id: "1", disposition: Disposition(state: .delivered), result: nil, attempt: AttemptRecord(), now: time.now)
        }
        let sooner = try await store.transition(
            id: "1", to: .pending, reason: nil, nextAttemptAt: .distantPast, from: [.pending], now: time.now)
        #expect(sooner.nextAttemptAt == .distantPast)
        let gone = try await store.transition(id: "1", to: .cancelled, reason: .discarded, from: [.pending], now: time.now)
        #expect(gone.state == .cancelled && gone.reason == .discarded && gone.endedAt == time.now)
        await store.close()
    }

    @Test func listsFilterAndPage() async throws {
        let store = try openData(scratch.state, time)
        for n in 0..<5 { _ = try await store.append(write("\(n)", lane: n % 2 == 0 ? "even" : "odd")) }
        _ = try await store.transition(id: "4", to: .cancelled, reason: nil, from: [.pending], now: time.now)
        #expect(try await store.operations().items.map(\.id) == ["0", "1", "2", "3"])
        #expect(try await store.operations(OperationFilter(lane: "even")).items.map(\.id) == ["0", "2"])
        #expect(try await store.operations(OperationFilter(states: [.cancelled])).items.map(\.id) == ["4"])
        let first = try await store.operations(OperationFilter(limit: 2))
        let second = try await store.operations(OperationFilter(limit: 2, cursor: first.next))
        #expect(second.items.map(\.id) == ["2", "3"] && second.next == nil)
        #expect(try await store.oldestPending() == time.now)
        await store.close()
    }

    @Test func largeBodiesAreFilesThatOutliveACrash() async throws {
        let store = try openData(scratch.state, time)
        let body = bytes(2_500_000)
        let writer = try await store.blobWriter(expectedLength: nil)
        for start in stride(from: 0, to: body.count, by: 400_000) {
            try await writer.append(ByteBuffer(bytes: body[start..<min(start + 400_000, body.count)]))
        }
        let blob = try await writer.finish()
        #expect(blob.length == 2_500_000)
        _ = try await store.append(write("1", body: blob))
        let crashed = try scratch.copy(scratch.state, to: "crashed")
        await store.close()
        let again = try openData(crashed, time)
        let found = try #require(try await again.operation(id: "1"))
        guard case .blob(let name, 2_500_000) = found.body else { return #expect(Bool(false), "expected a file") }
        let path = "\(crashed)/blobs/\(name)"
        #expect(FileManager.default.contents(atPath: path).map { Array($0) } == body)
        #expect(try again.content(of: found.body).bytes() == body)
        #expect(again.usage().blobBytes == Scratch.allocated(path))
        await again.close()
    }

    @Test func aBlobThatIsMissingIsNotAccepted() async throws {
        let store = try openData(scratch.state, time)
        let blob = OperationBody.blob(sha256: String(repeating: "0a", count: 32), length: 5)
        await #expect(throws: DataStoreError.self) { try await store.append(write("1", body: blob)) }
        #expect(try await store.counts().isEmpty)
        await store.close()
    }

    @Test func aBlobBeyondTheLimitIsRefusedAndLeavesNothing() async throws {
        let store = try openData(scratch.state, time, storage(data: .mb(8)))
        await #expect(throws: DataStoreError.full) {
            let writer = try await store.blobWriter(expectedLength: nil)
            for _ in 0..<20 { try await writer.append(ByteBuffer(bytes: bytes(1_000_000))) }
        }
        #expect(Scratch.files(under: "\(scratch.state)/blobs").isEmpty)
        #expect(store.usage().reservedBytes == 0)
        await store.close()
    }

    @Test func secretsAreOursAloneAndStay() async throws {
        let store = try openData(scratch.state, time)
        let token = try store.adminToken()
        let name = store.identityName(Array("Bearer x".utf8))
        #expect(token.count == 64 && token != name)
        #expect(name == store.identityName(Array("Bearer x".utf8)))
        #expect(name != store.identityName(Array("Bearer y".utf8)))
        await store.close()
        let path = "\(scratch.state)/admin-token"
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        let again = try openData(try scratch.copy(scratch.state, to: "copy"), time)
        #expect(try again.adminToken() == token)
        #expect(again.identityName(Array("Bearer x".utf8)) == name)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: "\(scratch.path)/copy/admin-token")
        #expect(throws: DataStoreError.self) { try again.adminToken() }
        await again.close()
    }

    @Test(arguments: [("", false), (String(repeating: "x", count: 31) + "\n", false), (String(repeating: "x", count: 32) + "\n", true)])
    func aTokenThatCanBeGuessedIsRefused(_ text: String, isTaken: Bool) async throws {
        let store = try openData(scratch.state, time)
        let path = "\(scratch.state)/admin-token"
        try Data(text.utf8).write(to: URL(filePath: path))
        #expect(chmod(path, 0o600) == 0)
        if isTaken {
            #expect(try store.adminToken().count == 32)
        } else {
            #expect(throws: DataStoreError.shortToken(path: path)) { try store.adminToken() }
        }
        await store.close()
    }

    @Test(arguments: ["", "foo\n"]) func aFileThatIsNoKeyIsRefused(_ text: String) async throws {
        try await openData(scratch.state, time).close()
        try Data(text.utf8).write(to: URL(filePath: "\(scratch.state)/install-key"))
        #expect(chmod("\(scratch.state)/install-key", 0o600) == 0)
        #expect(throws: DataStoreError.noKey(path: "\(scratch.state)/install-key")) { try openData(scratch.state, time) }
    }

    /// The switch promises that nothing is sent: what cannot be read may have been `offline`.
    @Test func aDamagedSwitchIsOffline() async throws {
        let store = try openData(scratch.state, time)
        #expect(store.networkSwitch() == nil)
        try Data("{{{".utf8).write(to: URL(filePath: "\(scratch.state)/network.json"))
        #expect(store.networkSwitch()?.mode == .offline && DataStore.networkSwitch(in: scratch.state)?.mode == .offline)
        try store.keep(NetworkSwitch(mode: .auto))
        #expect(store.networkSwitch()?.mode == .auto)
        await store.close()
    }

    @Test func theFirstPageShowsWhyAStoreWouldNotOpen() async throws {
        let path = "\(scratch.state)/data.sqlite"
        #expect(DataStore.refusal(in: scratch.state) == nil)
        try await openData(scratch.state, time).close()
        #expect(DataStore.refusal(in: scratch.state) == nil)
        let whole = try #require(FileManager.default.contents(atPath: path))
        var newer = whole
        newer[62] = 9
        try newer.write(to: URL(filePath: path))
        let refusal = try #require(DataStore.refusal(in: scratch.state))
        guard case .newerSchema = refusal else { throw refusal }
        #expect(throws: refusal) { try openData(scratch.state, time) }
        for damaged in [Data(repeating: 7, count: 5000), whole.prefix(20)] {
            try damaged.write(to: URL(filePath: path))
            let refusal = try #require(DataStore.refusal(in: scratch.state))
            guard case .corrupt = refusal else { throw refusal }
            #expect(throws: DataStoreError.self) { try openData(scratch.state, time) }
        }
    }

    @Test func aDirectoryBehindALinkIsItsOwnersAllTheSame() async throws {
        try FileManager.default.createDirectory(
            atPath: "\(scratch.path)/private", withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        try FileManager.default.createSymbolicLink(atPath: "\(scratch.path)/link", withDestinationPath: "\(scratch.path)/private")
        let store = try openData("\(scratch.path)/link", time)
        await store.close()
        #expect(chmod("\(scratch.path)/private", 0o755) == 0)
        #expect(throws: DataStoreError.readableByOthers(path: "\(scratch.path)/link")) { _ = try openData("\(scratch.path)/link", time) }
    }
}
