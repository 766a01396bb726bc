// A body that is passed on only once it is wanted (docs/outbox.md#reachability).
import NIOCore
import RockpoolCore
import Testing

@testable import RockpoolEngine

@Suite struct HeldBodyTests {
    @Test func whatNoConnectionHasTakenIsWholeAgain() async throws {
        let rest = BodyPipe(whole: ByteBuffer(string: "rest"))
        let held = HeldBody(ByteBuffer(string: "start, "), then: rest)
        held.passed().abandon()
        #expect(held.takeBack())
        #expect(String(buffer: held.start) + String(buffer: try await held.rest.collect(upTo: 100).bytes) == "start, rest")
        let taken = HeldBody(ByteBuffer(string: "start, "), then: BodyPipe(whole: ByteBuffer(string: "rest")))
        let pipe = taken.passed()
        #expect(String(buffer: try await pipe.collect(upTo: 100).bytes) == "start, rest")
        #expect(!taken.takeBack())
    }

    @Test func aConsumerThatLeavesEndsTheBody() {
        for isSettledFirst in [false, true] {
            let rest = BodyPipe()
            let held = HeldBody(ByteBuffer(string: "start, "), then: rest)
            let pipe = held.passed()
            if isSettledFirst { held.settle() }
            pipe.abandon()
            if !isSettledFirst { held.settle() }
            #expect(rest.isFull == false && rest.takeWhole(upTo: 100) == nil)
            rest.finish()
            #expect(rest.takeWhole(upTo: 100) == nil, "the client may stop sending")
        }
    }
}
