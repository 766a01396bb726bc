// The common shape of all benchmarks: a thousand calls per sample, measuring wall clock and allocations.
import Benchmark
import CAllocations

extension BenchmarkMetric {
    /// Calls of malloc and its variants.
    static var allocations: Self { .custom("Allocations", polarity: .prefersSmaller, useScalingFactor: true) }
}

extension Benchmark.Configuration {
    /// Instructions are counted where the processor permits it; elsewhere the package omits the metric.
    static var perCall: Self {
        Benchmark.Configuration(
            metrics: [.wallClock, .instructions, .allocations], scalingFactor: .kilo, maxDuration: .seconds(2), maxIterations: 2000)
    }
}

extension Benchmark {
    /// Calls `body` a thousand times and records the cost.
    func calls(_ body: () -> Void) {
        startMeasurement()
        let before = allocations_count()
        for _ in scaledIterations { body() }
        let after = allocations_count()
        stopMeasurement()
        measurement(.allocations, Int(clamping: after - before))
    }
}

/// Registers a benchmark of `body` after checking that it does what its name states.
func measure(_ name: String, holds isRight: @autoclosure () -> Bool, _ body: @escaping () -> Void) {
    precondition(isRight(), "\(name) does not do what it measures")
    Benchmark(name, configuration: .perCall) { benchmark in benchmark.calls(body) }
}
