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
}
