// The window of a shared body without tasks, step by step: reading, and the choice of the reader that pulls (docs/architecture.md#rules).
import NIOCore
import RockpoolCore
import Testing

@testable import RockpoolEngine

/// The state machine in a class, so that expectations can call its mutating functions.
private final class Window {
    private var machine: SharedBodyWindow
    var version: Int { machine.version }
    var ending: SharedBodyWindow.Ending? { machine.ending }
    var end: Int64 { machine.end }

    init(limit: Int = 1 << 20, prefix: Int64 = 0) { machine = SharedBodyWindow(limit: limit, prefix: prefix) }

    func join() -> Int? { machine.join() }
    /// Returns true if it was the last reader of an unfinished body; the rest is then fetched to the end.
    func leave(_ reader: Int, _ departure: ClientAbortPolicy = .finish) -> Bool { machine.leave(reader) { _ in departure } != nil }
    func next(_ reader: Int) -> SharedBodyWindow.Step { machine.next(for: reader) }
    func advance(_ reader: Int, by count: Int) { machine.advance(reader, by: count) }
    func append(_ chunk: ByteBuffer, isCopied: Bool) { _ = machine.append(chunk, isCopied: isCopied) }
    func finish(_ ending: SharedBodyWindow.Ending) { machine.finish(ending) }
    func cut(at position: Int64) -> Bool { machine.cut(at: position) }
    var untilCut: Int64? { machine.untilCut }
}

@Suite struct BodyWindowTests {
    static let chunk = ByteBuffer(string: "0123456789")

    @Test func whoeverHasReadEverythingFetchesMoreAndTheOthersWait() throws {
        let window = Window()
        let (a, b) = (try #require(window.join()), try #require(window.join()))
        #expect(window.next(a) == .pull)
        #expect(window.next(b) == .wait(version: window.version))
        window.append(Self.chunk, isCopied: true)
        #expect(window.next(b) == .chunk(Self.chunk))
        #expect(window.next(b) == .pull)
        #expect(window.next(a) == .chunk(Self.chunk))
        #expect(window.next(a) == .wait(version: window.version))
    }

    @Test func aCutTransferEndsForEachReaderWhereItIs() throws {
        let window = Window()
        let reader = try #require(window.join())
        #expect(window.cut(at: 15) && window.untilCut == 15)
        #expect(window.next(reader) == .pull)
        window.append(Self.chunk, isCopied: true)
        #expect(window.untilCut == 5 && !window.cut(at: 10) && !window.cut(at: 20))
        #expect(window.next(reader) == .chunk(Self.chunk))
        window.finish(.cut)
        #expect(window.next(reader) == .cut(at: 10))
        #expect(!window.cut(at: 12))
    }

    @Test func aWaitEndsWithEveryChange() throws {
        let window = Window()
        _ = window.join()
        let before = window.version
        window.append(Self.chunk, isCopied: true)
        #expect(window.version > before)
        let then = window.version
        window.finish(.whole)
        #expect(window.version > then)
    }

    @Test(arguments: [SharedBodyWindow.Ending.whole, .failed(.cancelled)])
    func everyReaderHearsOfTheEndAfterTheLastByte(ending: SharedBodyWindow.Ending) throws {
        let window = Window()
        let (a, b) = (try #require(window.join()), try #require(window.join()))
        window.append(Self.chunk, isCopied: true)
        window.finish(ending)
        for reader in [a, b] {
            #expect(window.next(reader) == .chunk(Self.chunk))
            #expect(window.next(reader) == (ending == .whole ? .end : .failed(.cancelled)))
        }
    }

    @Test func theFirstEndingCounts() {
        let window = Window()
        window.finish(.whole)
        window.finish(.failed(.cancelled))
        #expect(window.ending == .whole)
    }

    @Test func whatASlowReaderHasNotPassedIsReadFromTheCopyBeyondTheLimit() throws {
        let window = Window(limit: 20)
        let (fast, slow) = (try #require(window.join()), try #require(window.join()))
        for _ in 0..<3 {
            #expect(window.next(fast) == .pull)
            window.append(Self.chunk, isCopied: true)
            #expect(window.next(fast) == .chunk(Self.chunk))
        }
        #expect(window.next(slow) == .reread(offset: 0))
        window.advance(slow, by: 10)
        #expect(window.next(slow) == .chunk(Self.chunk))
    }

    @Test func withoutACopyTheSlowestHoldsTheOthersBackAtTheLimit() throws {
        let window = Window(limit: 20)
        let (fast, slow) = (try #require(window.join()), try #require(window.join()))
        for _ in 0..<2 {
            #expect(window.next(fast) == .pull)
            window.append(Self.chunk, isCopied: false)
            #expect(window.next(fast) == .chunk(Self.chunk))
        }
        #expect(window.next(fast) == .wait(version: window.version))
        let before = window.version
        #expect(window.next(slow) == .chunk(Self.chunk))
        #expect(window.version > before)
        #expect(window.next(fast) == .pull)
    }

    @Test func whoLeavesHoldsNobodyBackAndTheLastIsTold() throws {
        let window = Window(limit: 10)
        let (fast, slow) = (try #require(window.join()), try #require(window.join()))
        #expect(window.next(fast) == .pull)
        window.append(Self.chunk, isCopied: false)
        #expect(window.next(fast) == .chunk(Self.chunk))
        #expect(window.next(fast) == .wait(version: window.version))
        #expect(!window.leave(slow))
        #expect(window.next(fast) == .pull)
        #expect(window.leave(fast))
        #expect(window.next(fast) == .failed(.cancelled))
        #expect(!window.leave(fast))
    }

    @Test func aReaderWhoComesLateStartsAtTheFirstByteOrNotAtAll() throws {
        var copied = Window(limit: 10)
        var alone = Window(limit: 10)
        for isCopied in [true, false] {
            let window = Window(limit: 10)
            let reader = try #require(window.join())
            for _ in 0..<2 {
                #expect(window.next(reader) == .pull)
                window.append(Self.chunk, isCopied: isCopied)
                #expect(window.next(reader) == .chunk(Self.chunk))
            }
            if isCopied { copied = window } else { alone = window }
        }
        copied.finish(.whole)
        let late = try #require(copied.join())
        #expect(copied.next(late) == .reread(offset: 0))
        #expect(alone.join() == nil)
    }

    @Test func aPrefixIsReadFromTheCopyFirst() throws {
        let window = Window(prefix: 5)
        let reader = try #require(window.join())
        #expect(window.next(reader) == .reread(offset: 0))
        window.advance(reader, by: 5)
        #expect(window.next(reader) == .pull)
        #expect(window.end == 5)
    }

    @Test func whatTheCopyTookBeforeItWasFullIsReadFromIt() throws {
        let window = Window(limit: 10)
        let (fast, slow) = (try #require(window.join()), try #require(window.join()))
        for isCopied in [true, true, false] {
            #expect(window.next(fast) == .pull)
            window.append(Self.chunk, isCopied: isCopied)
            #expect(window.next(fast) == .chunk(Self.chunk))
        }
        #expect(window.next(slow) == .reread(offset: 0))
        window.advance(slow, by: 20)
        #expect(window.next(slow) == .chunk(Self.chunk))
    }

    @Test func nobodyJoinsABodyThatIsGivenUp() throws {
        let window = Window()
        let reader = try #require(window.join())
        #expect(window.leave(reader, .abort(.tooMuchRemains)))
        #expect(window.join() == nil)
    }
}
