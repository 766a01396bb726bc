// Benchmarks of the parts of a cache hit: time and allocations of each (docs/architecture.md#speed: compare results of one run, never
// single values).
import Benchmark

let benchmarks: @Sendable () -> Void = {
    requestBenchmarks()
    cachingBenchmarks()
    storeBenchmarks()
}
