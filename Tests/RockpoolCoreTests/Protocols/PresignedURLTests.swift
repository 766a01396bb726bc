// URLs that permit their request for a time (docs/caching.md#presigned-urls).
import Testing

@testable import RockpoolCore

@Suite struct PresignedURLTests {
    private static let moment = "2026-11-29T22:00:00Z"

    private static let forms: [(String, String?)] = [
        (
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AK%2F20261129%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20261129T210000Z"
                + "&X-Amz-Expires=3600&X-Amz-SignedHeaders=host&X-Amz-Security-Token=t&X-Amz-Signature=5", Self.moment
        ),
        (
            "X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Credential=a%40b&X-Goog-Date=20261129T213000Z&X-Goog-Expires=1800&X-Goog-SignedHeaders=host"
                + "&X-Goog-Signature=5", Self.moment
        ),
        ("AWSAccessKeyId=AK&Signature=a%2Bb%3D&Expires=1795989600", Self.moment),
        ("GoogleAccessId=a%40b&Expires=1795989600&Signature=5", Self.moment),
        ("Expires=1795989600&Signature=a-b_&Key-Pair-Id=K", Self.moment),
        (
            "Policy=eyJTdGF0ZW1lbnQiOlt7IlJlc291cmNlIjoiKiIsIkNvbmRpdGlvbiI6eyJEYXRlTGVzc1RoYW4iOnsiQVdTOkVwb2NoVGltZSI6MTc5NTk4OTYwMH19fV19"
                + "&Signature=a&Key-Pair-Id=K", Self.moment
        ),
        ("sv=2024-08-04&se=2026-11-29T22%3A00%3A00Z&sr=b&sp=r&sig=a%3D", Self.moment),
        ("sv=2024-08-04&se=2026-11-29T22:00Z&sp=r&sig=a", Self.moment),
        ("sv=2024-08-04&se=2026-11-29&sp=r&sig=a", "2026-11-29T00:00:00Z"), ("sv=2024-08-04&si=policy&sr=c&sig=a", nil),
    ]

    @Test(arguments: forms) func formsAreKnown(_ query: String, end: String?) throws {
        let url = try #require(PresignedURL(target: "/box/a%20b?versionId=3&" + query + "&x-id=GetObject"))
        #expect(url.target == "/box/a%20b?versionId=3&x-id=GetObject" && url.signature == query)
        #expect(url.expiresAt == end.flatMap(RFC3339.parse))
        #expect(PresignedURL(target: "/box/a?" + query)?.target == "/box/a")
    }

    @Test func otherQueriesAreNot() {
        for target in ["/a", "/a?", "/a?signature=1&expires=2", "/a?sig=1", "/a?X-Amz-Signature=1", "/a?sv=1&x=sig"] {
            #expect(PresignedURL(target: target) == nil, "\(target)")
        }
        #expect(PresignedURL(target: "/a?sv=1&sig=2&x=" + String(repeating: "x", count: 20_000)) == nil)
    }

    /// A client may send any text.
    @Test func timesThatAreNoneAreNoTimes() {
        for query in [
            "AWSAccessKeyId=a&Signature=b&Expires=soon", "Policy=!&Signature=a&Key-Pair-Id=K", "sv=1&se=never&sig=a",
            "X-Amz-Credential=a&X-Amz-Date=today&X-Amz-Expires=60&X-Amz-Signature=5",
            "X-Amz-Credential=a&X-Amz-Date=20261129T210000Z&X-Amz-Expires=-1&X-Amz-Signature=5",
        ] {
            #expect(PresignedURL(target: "/a?" + query).map(\.expiresAt) == .some(nil), "\(query)")
        }
        let longest = PresignedURL(
            target: "/a?X-Amz-Credential=a&X-Amz-Date=20261129T210000Z&X-Amz-Expires=9223372036854775807&X-Amz-Signature=5")
        #expect(longest?.expiresAt == RFC3339.parse("2026-12-06T21:00:00Z"))
    }

    @Test func aWriteWaitsWhereItsAddressOutlastsTheOutage() {
        let now = Timestamp(seconds: 1_000_000)
        func waits(_ rest: TimeSpan, away: TimeSpan) -> Bool { SignedWait.isLongEnough(until: now + rest, awaySince: now - away, now: now) }
        #expect(waits(.minutes(5), away: .seconds(10)) && !waits(.minutes(4), away: .seconds(10)))
        #expect(waits(.minutes(30), away: .minutes(20)) && !waits(.minutes(15), away: .minutes(20)))
        #expect(!waits(.seconds(-1), away: .zero))
    }
}
