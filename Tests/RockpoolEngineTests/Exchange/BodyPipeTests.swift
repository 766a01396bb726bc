// The pipe between producer and consumer: order, back-pressure, both kinds of end, and no side that waits for ever.
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1)))
struct BodyPipeTests {
    /// Records a pipe's signals.
    final class Ear: Sendable {
        private let heard = Mutex<[BodyPipe.Signal]>([])
        var signals: [BodyPipe.Signal] { heard.withLock { $0 } }
        init(_ pipe: BodyPipe) { pipe.onSignal { signal in self.heard.withLock { $0.append(signal) } } }
    }

    private static let cut = TransferFailure(kind: .reset, sent: .yes, detail: "cut")

    private func bytes(_ count: Int) -> ByteBuffer { ByteBuffer(repeating: 7, count: count) }

    private func take(_ pipe: BodyPipe, _ room: Int) -> (BodyPipe.Taken, String) {
        var target = [UInt8](repeating: 0, count: room)
        let taken = target.withUnsafeMutableBytes { pipe.take(into: $0) }
        guard case .bytes(let count) = taken else { return (taken, "") }
        return (taken, String(decoding: target[..<count], as: UTF8.self))
    }

    @Test func chunksComeInOrderAndThenTheEnd() async throws {
        let pipe = BodyPipe()
        for text in ["a", "", "b", "c"] { pipe.offer(ByteBuffer(string: text)) }
        pipe.finish()
        var all: [String] = []
        while let chunk = try await pipe.next() { all.append(String(buffer: chunk)) }
        #expect(all == ["a", "b", "c"])
        #expect(try await pipe.next() == nil)
    }

    /// Only what has ended well is taken at once: the rest comes by `next`, with its failure or its trailers.
    @Test func onlyAWholeBodyIsTakenWithoutWaiting() async throws {
        let budget = SharedBudget(limit: 100).share()
        let pipe = BodyPipe(budget: budget)
        pipe.offer(ByteBuffer(string: "a"))
        #expect(pipe.takeWhole(upTo: 9) == nil, "it has not ended")
        pipe.offer(ByteBuffer(string: "bc"))
        pipe.finish()
        #expect(pipe.takeWhole(upTo: 2) == nil, "it is longer")
        #expect(pipe.takeWhole(upTo: 3) == ByteBuffer(string: "abc"))
        #expect(try await pipe.next() == nil)
        let broken = BodyPipe()
        broken.offer(ByteBuffer(string: "a"))
        broken.fail(Self.cut)
        #expect(broken.takeWhole(upTo: 9) == nil)
        let trailed = BodyPipe()
        trailed.finish([.accept: "x"])
        #expect(trailed.takeWhole(upTo: 9) == nil)
    }

    @Test func aWholeBodyIsThereAtOnce() async throws {
        let (bytes, isWhole) = try await BodyPipe(whole: ByteBuffer(string: "shell")).collect(upTo: 5)
        #expect(String(buffer: bytes) == "shell" && isWhole)
    }

    @Test(arguments: [(3, true), (4, false), (5, false)])
    func offerAsksToPauseAtTheHighWaterMark(size: Int, goesOn: Bool) {
        let pipe = BodyPipe(highWater: 4)
        #expect(pipe.offer(bytes(size)) == goesOn)
        #expect(pipe.isFull == !goesOn)
    }

    @Test func pipesThatHoldTooMuchTogetherAreContentWithLess() {
        // Three quarters of it are the share of one client.
        let budget = SharedBudget(limit: 133_332).share()
        let (share, one) = (SharedBudget.Share.least, BodyPipe(highWater: 100_000, budget: budget))
        #expect(one.offer(bytes(99_999)), "within the share each pipe has its own limit")
        var other: BodyPipe? = BodyPipe(highWater: 100_000, budget: budget)
        #expect(other?.offer(bytes(share - 1)) == true && other?.offer(bytes(1)) == false)
        #expect(one.isFull, "the pipe now holds more than its share")
        // A released pipe returns its bytes to the budget, whatever way it ended.
        other = nil
        #expect(!one.isFull)
        let third = BodyPipe(highWater: 100_000, budget: budget)
        third.offer(bytes(share))
        #expect(third.isFull)
        _ = take(one, 99_999)
        #expect(!third.isFull && third.offer(bytes(1)))
        third.abandon()
        #expect(one.offer(bytes(99_999)))
    }

    @Test func drainedIsToldOnceAndOnlyBelowHalf() {
        let pipe = BodyPipe(highWater: 8)
        let ear = Ear(pipe)
        #expect(!pipe.offer(bytes(8)))
        _ = take(pipe, 4)
        #expect(ear.signals == [.wanted], "half full is not empty enough for `drained`")
        _ = take(pipe, 1)
        _ = take(pipe, 1)
        #expect(ear.signals == [.wanted, .drained])
    }

    @Test func wantedIsToldOnceEvenToALateListener() {
        let pipe = BodyPipe()
        _ = take(pipe, 1)
        _ = take(pipe, 1)
        #expect(Ear(pipe).signals == [.wanted])
    }

    @Test func abandonedIsToldToALateListener() {
        let pipe = BodyPipe()
        pipe.abandon()
        #expect(Ear(pipe).signals == [.abandoned])
    }

    @Test func abandonAfterTheEndIsNobodysConcern() {
        let pipe = BodyPipe(whole: bytes(1))
        let ear = Ear(pipe)
        pipe.abandon()
        #expect(ear.signals.isEmpty)
    }

    @Test func anAbandonedPipeTakesNothingAndNeverPauses() {
        let pipe = BodyPipe(highWater: 1)
        pipe.abandon()
        #expect(pipe.offer(bytes(100)))
        #expect(!pipe.isFull)
        #expect(take(pipe, 10).0 == .failed)
    }

    @Test func offerAfterTheEndIsDropped() async throws {
        let pipe = BodyPipe(whole: ByteBuffer(string: "whole"))
        pipe.offer(ByteBuffer(string: "late"))
        #expect(String(buffer: try await pipe.collect(upTo: 100).bytes) == "whole")
    }

    @Test func failureComesAfterTheChunksBeforeIt() async throws {
        let pipe = BodyPipe()
        pipe.offer(ByteBuffer(string: "part"))
        pipe.fail(Self.cut)
        #expect(String(buffer: try #require(try await pipe.next())) == "part")
        await #expect(throws: Self.cut) { try await pipe.next() }
        await #expect(throws: Self.cut, "it stays broken") { try await pipe.next() }
    }

    @Test func failureAfterTheEndChangesNothing() async throws {
        let pipe = BodyPipe(whole: ByteBuffer(string: "whole"))
        pipe.fail(Self.cut)
        #expect(try await pipe.collect(upTo: 100).isWhole)
    }

    @Test func takeReadsPartsOfChunks() {
        let pipe = BodyPipe()
        pipe.offer(ByteBuffer(string: "abcde"))
        pipe.offer(ByteBuffer(string: "fg"))
        #expect(take(pipe, 2) == (.bytes(2), "ab"))
        #expect(take(pipe, 10) == (.bytes(3), "cde"))
        #expect(take(pipe, 2) == (.bytes(2), "fg"))
        #expect(take(pipe, 2).0 == .empty)
        pipe.finish()
        #expect(take(pipe, 2).0 == .end)
    }

    @Test func takeTellsFailureAfterTheBytes() {
        let pipe = BodyPipe()
        pipe.offer(bytes(1))
        pipe.fail(Self.cut)
        #expect(take(pipe, 1).0 == .bytes(1))
        #expect(take(pipe, 1).0 == .failed)
    }

    @Test func readableIsToldAtBytesEndAndFailure() {
        let pipe = BodyPipe()
        let times = Mutex(0)
        pipe.onReadable { times.withLock { $0 += 1 } }
        pipe.offer(bytes(1))
        pipe.finish()
        #expect(times.withLock { $0 } == 2)
    }

    @Test func aWaitingConsumerIsWokenByBytesEndAndFailure() async throws {
        let pipe = BodyPipe()
        let ear = Ear(pipe)
        let reader = Task { try await pipe.next().map { String(buffer: $0) } }
        try await eventually("the reader asks") { ear.signals == [.wanted] }
        pipe.offer(ByteBuffer(string: "late"))
        #expect(try await reader.value == "late")
    }

    @Test func cancellationWakesTheConsumerAndTellsTheProducer() async throws {
        let pipe = BodyPipe()
        let ear = Ear(pipe)
        let reader = Task { () -> TransferFailure? in
            do { _ = try await pipe.next() } catch { return error as? TransferFailure }
            return nil
        }
        try await eventually("the reader asks") { ear.signals == [.wanted] }
        reader.cancel()
        #expect(await reader.value?.kind == .cancelled)
        #expect(ear.signals == [.wanted, .abandoned])
    }

    /// The consumer took the last byte before the producer called `pause()`: the producer must be signalled to continue all the same.
    @Test func aPauseThatComesAfterTheLastByteWasTakenIsEndedAtOnce() async throws {
        let pipe = BodyPipe(highWater: 4)
        let ear = Ear(pipe)
        let reader = Task { try await pipe.next() }
        try await eventually("the reader asks") { ear.signals == [.wanted] }
        pipe.pause()
        await #expect(throws: Never.self) {
            try await eventually("the producer is told", within: .seconds(2)) { ear.signals == [.wanted, .drained] }
        }
        reader.cancel()
        _ = try? await reader.value
    }

    @Test func producerAndConsumerOnTwoTasksLoseNothing() async throws {
        let pipe = BodyPipe(highWater: 64)
        let (rooms, feed) = AsyncStream.makeStream(of: Void.self)
        pipe.onSignal { if $0 == .drained { feed.yield() } }
        let producer = Task {
            var room = rooms.makeAsyncIterator()
            for number in 0..<2000 where !pipe.offer(ByteBuffer(integer: UInt32(number))) { await room.next() }
            pipe.finish()
        }
        var (count, next) = (0, UInt32(0))
        while var chunk = try await pipe.next() {
            #expect(chunk.readInteger() == next)
            (count, next) = (count + 1, next + 1)
        }
        await producer.value
        #expect(count == 2000)
    }
}

@Suite(.timeLimit(.minutes(1)))
struct BodySourceTests {
    @Test(arguments: [(0, "", false), (3, "abc", false), (4, "abcd", false), (6, "abcdef", true), (9, "abcdef", true)])
    func collectKeepsNoMoreThanItsLimit(limit: Int, kept: String, isWhole: Bool) async throws {
        let pipe = BodyPipe()
        for text in ["ab", "cd", "ef"] { pipe.offer(ByteBuffer(string: text)) }
        pipe.finish()
        let (bytes, whole) = try await pipe.collect(upTo: limit)
        #expect(String(buffer: bytes) == kept && whole == isWhole)
    }

    @Test func collectPastItsLimitLetsTheProducerGo() async throws {
        let pipe = BodyPipe()
        let ear = BodyPipeTests.Ear(pipe)
        pipe.offer(ByteBuffer(string: "abc"))
        _ = try await pipe.collect(upTo: 2)
        #expect(ear.signals.last == .abandoned)
    }

    @Test func drainReadsToTheEndAndTellsWhatBroke() async throws {
        try await BodyPipe(whole: ByteBuffer(string: "abc")).drain()
        let broken = BodyPipe()
        broken.offer(ByteBuffer(string: "ab"))
        broken.fail(TransferFailure(kind: .idleTimeout, sent: .yes))
        await #expect(throws: TransferFailure.self) { try await broken.drain() }
    }
}
