// The ring from which event streams resume, at its capacity and one past it.
import RockpoolCore
import Testing

@Suite struct EventRingTests {
    /// Returns a ring of capacity three after `count` events.
    private func ring(_ count: Int) -> EventRing {
        var ring = EventRing(epoch: "e", capacity: 3)
        for number in 0..<count { ring.append("operation", data: ["number": .number(JSONNumber(Int64(number + 1)))]) }
        return ring
    }

    @Test(
        arguments: [
            (0, nil, 0, false), (5, nil, 5, false),
            (5, "e-5", 5, false), (5, "e-2", 2, false), (5, "e-1", 2, true), (5, "e-6", 2, true),
            (3, "e-0", 0, false), (5, "other-4", 2, true), (5, "", 2, true), (5, "e-x", 2, true), (5, "e-4-4", 2, true),
        ] as [(Int, String?, UInt64, Bool)])
    func aListenerGoesOnWhereItStoppedOrHearsOfTheGap(_ taken: Int, _ last: String?, _ number: UInt64, _ isGap: Bool) {
        let position = ring(taken).position(after: last)
        #expect(position.number == number && position.isGap == isGap)
    }

    @Test(arguments: [(5, 5, 0), (5, 4, 1), (5, 2, 3), (5, 1, nil), (0, 0, 0), (2, 0, 2)] as [(Int, UInt64, Int?)])
    func framesAreThoseAfterANumberUnlessSomeAreGone(_ taken: Int, _ number: UInt64, _ count: Int?) {
        #expect(ring(taken).frames(after: number)?.count == count)
    }

    @Test func aFrameIsAnIdANameAndOneObject() {
        #expect(ring(1).frames(after: 0)?.first == "id: e-1\nevent: operation\ndata: {\"number\":1}\n\n")
        let broken = EventRing.frame(id: "e-1", name: "storage", data: ["detail": "two\nlines"])
        #expect(broken.split(separator: "\n").count == 3, "a line break in a text must not end the data")
    }
}
