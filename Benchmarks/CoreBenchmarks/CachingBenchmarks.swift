// Benchmarks of the caching decisions: parsing Cache-Control, and selecting a stored response.
import Benchmark
import HTTPTypes
import RockpoolCore

func cachingBenchmarks() {
    let plain: HTTPFields = [.cacheControl: "public, max-age=3600"]
    measure("CacheControl, two directives", holds: CacheControl(plain).maxAge == .hours(1)) { blackHole(CacheControl(plain)) }

    let long: HTTPFields = [
        .cacheControl: #"private="set-cookie, x-user", max-age=60, s-maxage=120, stale-while-revalidate=30, stale-if-error=600, immutable"#
    ]
    measure("CacheControl, six directives", holds: CacheControl(long).immutable) { blackHole(CacheControl(long)) }

    let fresh = [Sample.response(cacheControl: "public, max-age=3600")]
    measure("Reuse.decide, fresh", holds: isFresh(decision(fresh))) { blackHole(decision(fresh)) }

    let stale = [Sample.response(cacheControl: "no-cache")]
    measure("Reuse.decide, to be validated", holds: isToBeValidated(decision(stale))) { blackHole(decision(stale)) }
}

private func decision(_ candidates: [StoredResponse]) -> Reuse {
    Reuse.decide(candidates: candidates, request: Sample.request, context: ReuseContext(), now: Sample.now + .seconds(10))
}

private func isFresh(_ reuse: Reuse) -> Bool {
    if case .fresh = reuse { true } else { false }
}

private func isToBeValidated(_ reuse: Reuse) -> Bool {
    if case .validate = reuse { true } else { false }
}
