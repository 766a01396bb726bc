// The decision to finish or abort a fetch after its client has left.
import RockpoolCore
import Testing

@Suite struct DepartureTests {
    private static let small = ClientAbortPolicy.smallRest.bytes
    private static let maxRest = ClientAbortPolicy.maxRest.bytes

    @Test(arguments: [
        (Int64(0), Int64?.none, ClientAbortPolicy.abort(.endUnknown)), (.max, nil, .abort(.endUnknown)),
        (0, 0, .finish), (0, small, .finish), (0, small + 1, .abort(.tooMuchRemains)),
        (1_000_000, 1_000_000 + small, .finish), (1_000_000, 1_000_001 + small, .abort(.tooMuchRemains)),
        (95_000_000, 100_000_000, .finish), (94_999_999, 100_000_000, .abort(.tooMuchRemains)),
        // Five percent of a large body is too much.
        (95 * maxRest / 5, 100 * maxRest / 5, .finish), (96 * maxRest, 100 * maxRest, .abort(.tooMuchRemains)),
        (99 * maxRest, 100 * maxRest, .finish),
        // Inconsistent numbers do not trap.
        (10, 5, .finish), (.max, 0, .finish), (0, .max, .abort(.tooMuchRemains)), (.max, .max, .finish), (0, -1, .finish),
    ])
    func stored(_ received: Int64, announced: Int64?, expected: ClientAbortPolicy) {
        let (received, announced) = (ByteCount(received), announced.map { ByteCount($0) })
        #expect(ClientAbortPolicy.decide(received: received, announced: announced, isStored: true, hasOtherReaders: false) == expected)
        #expect(ClientAbortPolicy.decide(received: received, announced: announced, isStored: true, hasOtherReaders: true) == .finish)
        #expect(ClientAbortPolicy.decide(received: received, announced: announced, isStored: false, hasOtherReaders: true) == .finish)
        #expect(
            ClientAbortPolicy.decide(received: received, announced: announced, isStored: false, hasOtherReaders: false)
                == .abort(.notStored))
    }

    @Test(arguments: [
        (AbortRule.word(.always), Int64(0), Int64?.none, ClientAbortPolicy.finish), (.word(.always), 0, .max, .finish),
        (.word(.never), 10, 11, .abort(.rule)), (.word(.never), 0, nil, .abort(.rule)),
        (bounds(below: .kib(1), above: 50), 0, 1024, .finish), (bounds(below: .kib(1), above: 50), 0, 1025, .abort(.tooMuchRemains)),
        // The bound of the built-in rule for the rest does not apply.
        (bounds(below: .zero, above: 50), 10 * maxRest, 20 * maxRest, .finish),
        (bounds(below: .zero, above: 50), 10 * maxRest - 1, 20 * maxRest, .abort(.tooMuchRemains)),
        (bounds(below: .zero, above: 100), 99, 100, .abort(.tooMuchRemains)), (bounds(below: .zero, above: 0), 0, 100, .finish),
        (bounds(below: .kib(1), above: 0), 0, nil, .abort(.endUnknown)),
    ])
    func ruled(_ rule: AbortRule, _ received: Int64, announced: Int64?, expected: ClientAbortPolicy) {
        let decide = { (isStored: Bool, others: Bool) in
            ClientAbortPolicy.decide(
                received: ByteCount(received), announced: announced.map { ByteCount($0) }, isStored: isStored, hasOtherReaders: others,
                rule: rule)
        }
        #expect(decide(true, false) == expected)
        #expect(decide(true, true) == .finish)
        #expect(decide(false, false) == .abort(.notStored))
    }

    private static func bounds(below: ByteCount, above: Int) -> AbortRule {
        var bounds = AbortBounds()
        (bounds.finishBelow, bounds.finishAbovePercent) = (below, above)
        return .bounds(bounds)
    }
}
