// The shape all of them share: a thousand calls a sample, wall clock and allocations.
import Benchmark
import CAllocations

extension BenchmarkMetric {
    /// Calls of malloc and its kin.
    static var allocations: Self { .custom("Allocations", polarity: .prefersSmaller, useScalingFactor: true) }
}

extension Benchmark.Configuration {
    /// Instructions are counted where the processor lets us count them; elsewhere the package leaves the metric out.
    static var perCall: Self {
        Benchmark.Configuration(
            metrics: [.wallClock, .instructions, .allocations], scalingFactor: .kilo, maxDuration: .seconds(2), maxIterations: 2000)
    }
}

extension Benchmark {
    /// Calls `body` a thousand times and notes what that took.
    func calls(_ body: () -> Void) {
        startMeasurement()
        let before = allocations_count()
        for _ in scaledIterations { body() }
        let after = allocations_count()
        stopMeasurement()
        measurement(.allocations, Int(clamping: after - before))
    }
}

/// Registers a benchmark of `body`, unless it would measure something else than its name says.
func measure(_ name: String, holds isRight: @autoclosure () -> Bool, _ body: @escaping () -> Void) {
    precondition(isRight(), "\(name) does not do what it measures")
    Benchmark(name, configuration: .perCall) { benchmark in benchmark.calls(body) }
}
