// Benchmarks of request parsing: the gate, the cache key, and the fields read for every request.
import Benchmark
import HTTPTypes
import RockpoolCore

func requestBenchmarks() {
    let limits = ClientLimits()
    let isAdmitted = { () -> Bool in
        let framing = try? RequestGate.check(
            method: "GET", target: Sample.target, version: (1, 1), fields: Sample.requestFields, limits: limits)
        blackHole(framing)
        return framing != nil
    }
    measure("RequestGate.check", holds: isAdmitted()) { blackHole(isAdmitted()) }

    measure("CacheKey", holds: CacheKey(Sample.request).url == Sample.request.url) { blackHole(CacheKey(Sample.request)) }

    let date = HTTPDate.format(Sample.now)
    measure("HTTPDate.parse", holds: HTTPDate.parse(date) == Sample.now) { blackHole(HTTPDate.parse(date)) }
}
