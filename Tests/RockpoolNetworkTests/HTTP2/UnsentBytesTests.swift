// The time limit for a client that reads nothing, and the read-ahead of a file for it (RFC 9113 §5.2;
// docs/security-model.md#stalled-readers).
import NIOCore
import RockpoolEngine
import Testing

@testable import RockpoolNetwork

struct UnsentBytesTests {
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    private var late: NIODeadline { start + .seconds(10) }

    /// Returns `count` streams that each have had 100 unsent bytes since the start.
    private func blocked(_ count: Int) -> UnsentBytes {
        var unsent = UnsentBytes(patience: .seconds(10))
        for _ in 0..<count {
            unsent.open()
            unsent.add(100, to: 0, now: start)
        }
        return unsent
    }

    @Test(arguments: [1, 100]) func aClientThatTakesNothingIsStuckAfterItsTime(streams: Int) {
        let unsent = blocked(streams)
        #expect(unsent.bytes == 100 * streams && unsent.blocked == streams)
        #expect(!unsent.isStuck(at: late - .nanoseconds(1)))
        #expect(unsent.isStuck(at: late))
    }

    @Test func aConnectionWithoutUnsentBytesIsNotStuck() {
        var unsent = UnsentBytes(patience: .seconds(10))
        #expect(!unsent.isStuck(at: late))
        unsent.open()
        #expect(!unsent.isStuck(at: late), "the stream waits for the server, not for the client")
    }

    @Test func aStreamThatWaitsForUsKeepsTheConnection() {
        var unsent = blocked(3)
        unsent.open()
        #expect(!unsent.isStuck(at: late))
        unsent.close()
        #expect(unsent.isStuck(at: late))
    }

    @Test func takingBuysTime() {
        var unsent = blocked(2)
        unsent.take(60, leaving: 40, now: start + .seconds(9))
        #expect(!unsent.isStuck(at: late))
        #expect(unsent.isStuck(at: start + .seconds(19)) && unsent.bytes == 140)
        unsent.take(40, leaving: 0, now: start + .seconds(19))
        #expect(unsent.blocked == 1 && !unsent.isStuck(at: start + .seconds(40)), "one stream waits for the server")
    }

    @Test func newStreamsBuyNoTime() {
        var unsent = blocked(2)
        unsent.open()
        unsent.add(100, to: 0, now: start + .seconds(9))
        unsent.add(100, to: 100, now: start + .seconds(9))
        #expect(unsent.isStuck(at: late) && unsent.blocked == 3)
    }

    @Test func whatIsLostIsNotTaken() {
        var unsent = blocked(2)
        unsent.drop(100, leaving: 0)
        unsent.close()
        #expect(unsent.isStuck(at: late) && unsent.bytes == 100)
        unsent.drop(100, leaving: 0)
        unsent.close()
        #expect(!unsent.isStuck(at: late) && unsent.bytes == 0 && unsent.streams == 0)
    }

    @Test func whatWasSentWholeIsTaken() {
        var unsent = blocked(1)
        unsent.received(now: start + .seconds(9))
        #expect(!unsent.isStuck(at: late) && unsent.isStuck(at: start + .seconds(19)))
    }

    @Test func aWaitBeginsWithItsFirstByte() {
        var unsent = blocked(1)
        unsent.take(100, leaving: 0, now: start)
        unsent.add(100, to: 0, now: start + .seconds(60))
        #expect(!unsent.isStuck(at: start + .seconds(69)))
        #expect(unsent.isStuck(at: start + .seconds(70)))
    }

    // MARK: pieces

    @Test(
        arguments: [
            (1, 0, false, 4096), (1, 4096, false, 4096), (1, 9000, false, 9000), (1, 1 << 30, false, 65_536), (32, 1 << 30, false, 65_536),
            (64, 1 << 30, false, 32_768), (100, 1 << 30, false, 20_971), (1000, 1 << 30, false, 16_384), (1, 1 << 30, true, 4096),
            (100, 0, true, 4096),
        ] as [(Int, Int64, Bool, Int)])
    func noMoreIsReadThanTheClientHasTaken(_ streams: Int, taken: Int64, isScarce: Bool, piece: Int) {
        #expect(blocked(streams).piece(after: taken, isScarce: isScarce) == piece)
    }

    @Test func aConnectionBeyondItsLimitReadsTheLeast() {
        var unsent = blocked(1)
        unsent.add(UnsentBytes.limit, to: 100, now: start)
        #expect(unsent.piece(after: 1 << 30, isScarce: false) == UnsentBytes.least)
    }

    @Test func allConnectionsShareABudget() {
        let budget = SharedBudget(limit: 1334).share()
        let other = StreamBacklog(patience: .seconds(10), budget: budget)
        do {
            let greedy = StreamBacklog(patience: .seconds(10), budget: budget)
            greedy.add(1001, to: 0)
            #expect(other.piece(after: 1 << 30) == UnsentBytes.least)
            greedy.take(1, leaving: 1000)
            #expect(other.piece(after: 1 << 30) == UnsentBytes.most)
            greedy.add(1, to: 1000)
        }
        #expect(other.piece(after: 1 << 30) == UnsentBytes.most, "a backlog returns its bytes to the budget when it is released")
    }
}
