// What a hit is made of, piece by piece: time and allocations of each (design §7 says how to read them: side by side, never alone).
import Benchmark

let benchmarks: @Sendable () -> Void = {
    requestBenchmarks()
    cachingBenchmarks()
    storeBenchmarks()
}
