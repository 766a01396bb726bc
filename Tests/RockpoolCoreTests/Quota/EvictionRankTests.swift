// The rank of entries within a category, and its hit ratios on generated traces (docs/storage.md#eviction).
import Foundation
import RockpoolCore
import Testing

@Suite struct EvictionRankTests {
    @Test func requestsCountUpToABoundAndSizeByItsRoot() {
        let rank = { (requests: Int64, bytes: Int64) in EvictionOrder.rank(requests: requests, bytes: bytes, above: 0) }
        #expect(rank(20, 1000) > rank(2, 1000) && rank(2, 1000) > rank(2, 4000))
        #expect(rank(2, 1000) == rank(4, 4000), "four times the size weighs as half the requests")
        #expect(rank(.max, 1000) == rank(EvictionOrder.mostRequests, 1000))
        #expect(rank(.min, .min) == 1, "numbers of a damaged file")
        #expect(EvictionOrder.rank(requests: 1, bytes: 1000, above: 2) > rank(2, 1000), "what is read now stands above what has left")
    }

    /// A request of a trace: the number and the size of an entry.
    private struct Asked {
        let number: Int
        let bytes: Int64
    }

    /// Random numbers that are the same in every run (SplitMix64).
    private struct Chance {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }

        /// A number from 0 up to but not including 1.
        mutating func share() -> Double { Double(next() >> 11) / Double(1 << 53) }
    }

    /// Popularity by Zipf's law with exponent 0.9 over 2,000 entries of 256 bytes to 1 MiB.
    private func generated(_ count: Int) -> [Asked] {
        var chance = Chance(state: 1)
        let sizes = (0..<2000).map { _ in Int64(256 << (chance.next() % 13)) }
        var sums: [Double] = []
        for rank in 1...2000 { sums.append((sums.last ?? 0) + 1 / pow(Double(rank), 0.9)) }
        return (0..<count).map { _ in
            let place = chance.share() * (sums.last ?? 0)
            let number = sums.firstIndex { $0 > place } ?? 0
            return Asked(number: number, bytes: sizes[number])
        }
    }

    /// The share of hits among the requests, and among their bytes, of a cache that evicts the entry with the lowest value.
    /// - Parameter value: of an entry with this number of requests at this place of the trace, above a floor.
    private func hits(
        _ trace: [Asked], room: Int64, value: (_ requests: Int64, _ asked: Asked, _ place: Int, _ floor: Double) -> Double
    ) -> (requests: Double, bytes: Double) {
        var (stored, used, floor): ([Int: (requests: Int64, value: Double, bytes: Int64)], Int64, Double) = ([:], 0, 0)
        var (found, foundBytes, all): (Int, Int64, Int64) = (0, 0, 0)
        for (place, asked) in trace.enumerated() {
            all += asked.bytes
            let before = stored[asked.number]
            if before != nil { (found, foundBytes) = (found + 1, foundBytes + asked.bytes) } else { used += asked.bytes }
            let requests = (before?.requests ?? 0) + 1
            stored[asked.number] = (requests, value(requests, asked, place, floor), asked.bytes)
            while used > room, let gone = stored.min(by: { $0.value.value < $1.value.value }) {
                stored[gone.key] = nil
                used -= gone.value.bytes
                floor = max(floor, gone.value.value)
            }
        }
        return (Double(found) / Double(trace.count), Double(foundBytes) / Double(all))
    }

    /// Beside LRU, GreedyDual-Size-Frequency and the optimum, which knows the next request.
    @Test func moreRequestsThanLRUAndMoreBytesThanGDSF() {
        let trace = generated(6000)
        var next = [Int](repeating: .max, count: trace.count)
        var last: [Int: Int] = [:]
        for place in trace.indices.reversed() { (next[place], last[trace[place].number]) = (last[trace[place].number] ?? .max, place) }
        let room: Int64 = 8 << 20
        let ours = hits(trace, room: room) { requests, asked, _, floor in
            EvictionOrder.rank(requests: requests, bytes: asked.bytes, above: floor)
        }
        let lru = hits(trace, room: room) { _, _, place, _ in Double(place) }
        let gdsf = hits(trace, room: room) { requests, asked, _, floor in floor + Double(requests) / Double(asked.bytes) }
        let optimum = hits(trace, room: room) { _, _, place, _ in -Double(next[place]) }
        let all = "rank \(ours), LRU \(lru), GDSF \(gdsf), optimum \(optimum)"
        #expect(ours.requests > lru.requests + 0.05 && ours.bytes > lru.bytes, "\(all)")
        #expect(ours.bytes > gdsf.bytes && ours.bytes < optimum.bytes, "\(all)")
    }
}
