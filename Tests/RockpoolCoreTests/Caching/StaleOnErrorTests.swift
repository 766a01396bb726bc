// RFC 5861 §4, RFC 9111 §4.3.3: failures for which a stale response may be served. All responses are received at second 0.
import RockpoolCore
import Testing

@Suite struct StaleOnErrorTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var stored: String
        var now: Int64
        var failure: UpstreamFailure
        var permitted: Bool
        var policy = CachePolicy.standard
        var request = ""
        var window = TimeSpan.forever
        var staleOnError: TimeSpan?
        var testDescription: String { "\(stored) @\(now) \(failure) \(policy) \(request)" }
    }

    static let minute = "Cache-Control: max-age=60"
    static let tolerant = minute + ", stale-if-error=30"

    @Test(arguments: [
        // stale-if-error in the response or in the request.
        Case(stored: tolerant, now: 90, failure: .status(500), permitted: true),
        Case(stored: tolerant, now: 90, failure: .status(502), permitted: true),
        Case(stored: tolerant, now: 90, failure: .status(503), permitted: true),
        Case(stored: tolerant, now: 90, failure: .status(504), permitted: true),
        Case(stored: tolerant, now: 91, failure: .status(500), permitted: false),
        Case(stored: tolerant, now: 61, failure: .status(501), permitted: false),
        Case(stored: tolerant, now: 61, failure: .status(404), permitted: false),
        Case(stored: tolerant, now: 61, failure: .status(200), permitted: false),
        Case(stored: minute, now: 70, failure: .status(503), permitted: true, request: "Cache-Control: stale-if-error=10"),
        Case(stored: minute, now: 71, failure: .status(503), permitted: false, request: "Cache-Control: stale-if-error=10"),
        Case(stored: tolerant, now: 61, failure: .status(503), permitted: false, request: "Cache-Control: no-cache"),
        Case(stored: tolerant + ", must-revalidate", now: 61, failure: .status(503), permitted: false),
        Case(stored: tolerant + ", no-cache", now: 1, failure: .status(503), permitted: false),
        Case(stored: "Cache-Control: s-maxage=60, stale-if-error=30", now: 61, failure: .status(503), permitted: false),
        // Revalidated although fresh.
        Case(stored: minute, now: 1, failure: .status(503), permitted: true),
        Case(stored: minute + ", must-revalidate", now: 1, failure: .status(503), permitted: true),
        Case(stored: minute, now: 30, failure: .status(503), permitted: false, request: "Cache-Control: max-age=20"),
        Case(stored: minute, now: 30, failure: .status(503), permitted: true, request: "Cache-Control: max-age=20, max-stale=10"),
        Case(stored: minute, now: 55, failure: .unreachable, permitted: false, request: "Cache-Control: min-fresh=10"),
        // Unreachable: RFC 9111 §4.2.4.
        Case(stored: minute, now: 9999, failure: .unreachable, permitted: true),
        Case(stored: minute, now: 9999, failure: .unreachable, permitted: false, window: .seconds(9998)),
        Case(stored: minute, now: 61, failure: .status(503), permitted: false),
        Case(stored: minute + ", must-revalidate", now: 61, failure: .unreachable, permitted: false),
        Case(stored: minute + ", proxy-revalidate", now: 61, failure: .unreachable, permitted: false),
        Case(stored: minute, now: 1, failure: .unreachable, permitted: false, request: "Cache-Control: no-cache"),
        Case(stored: minute, now: 1, failure: .unreachable, permitted: false, request: "Cache-Control: no-store"),
        // Offline-first.
        Case(stored: minute + ", no-cache, must-revalidate", now: 100, failure: .unreachable, permitted: true, policy: .offlineFirst),
        Case(stored: minute, now: 100, failure: .unreachable, permitted: true, policy: .offlineFirst, request: "Cache-Control: no-cache"),
        Case(stored: minute, now: 101, failure: .unreachable, permitted: false, policy: .offlineFirst, window: .seconds(100)),
        Case(stored: minute, now: 100, failure: .status(503), permitted: true, policy: .offlineFirst),
        Case(stored: minute, now: 100, failure: .status(500), permitted: true, policy: .offlineFirst),
        Case(stored: minute, now: 101, failure: .status(500), permitted: false, policy: .offlineFirst, window: .seconds(100)),
        Case(stored: minute + ", must-revalidate", now: 100, failure: .status(503), permitted: false, policy: .offlineFirst),
        Case(stored: minute, now: 100, failure: .status(403), permitted: false, policy: .offlineFirst),
        // Statuses of content delivery networks.
        Case(stored: tolerant, now: 90, failure: .status(520), permitted: true),
        Case(stored: minute, now: 100, failure: .status(529), permitted: true, policy: .offlineFirst),
        Case(stored: tolerant, now: 90, failure: .status(530), permitted: false),
        // A window of the configuration.
        Case(stored: minute, now: 90, failure: .status(503), permitted: true, staleOnError: .seconds(30)),
        Case(stored: minute, now: 91, failure: .status(503), permitted: false, staleOnError: .seconds(30)),
        Case(stored: minute, now: 90, failure: .status(404), permitted: false, staleOnError: .seconds(30)),
        Case(stored: minute + ", must-revalidate", now: 61, failure: .status(503), permitted: false, staleOnError: .forever),
        Case(stored: minute, now: 61, failure: .status(503), permitted: false, request: "Cache-Control: no-cache", staleOnError: .forever),
        Case(stored: minute, now: 61, failure: .untrusted, permitted: false, staleOnError: .forever),
        // A demand to pause.
        Case(stored: minute, now: 100, failure: .status(429), permitted: true, policy: .offlineFirst),
        Case(stored: minute, now: 100, failure: .status(429), permitted: false, policy: .offlineFirst, request: "Cache-Control: no-cache"),
        Case(stored: minute, now: 100, failure: .status(429), permitted: false),
        Case(stored: tolerant, now: 90, failure: .status(429), permitted: true),
        // A certificate error is never hidden by a stored response.
        Case(stored: tolerant, now: 1, failure: .untrusted, permitted: false),
        Case(stored: tolerant, now: 1, failure: .untrusted, permitted: false, policy: .offlineFirst),
    ])
    func permits(_ given: Case) {
        let context = ReuseContext(policy: given.policy, offlineWindow: given.window, staleOnError: given.staleOnError)
        let permitted = StaleOnError.permits(
            CachingFixture.stored(given.stored), request: CachingFixture.request(given.request), failure: given.failure, context: context,
            now: CachingFixture.at(given.now))
        #expect(permitted == given.permitted)
    }
}
