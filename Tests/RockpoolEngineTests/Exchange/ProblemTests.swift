// Problem documents: every type has the status specified for it (RFC 9457, docs/reference/admin-api.md#problems).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolEngine
import Testing

struct ProblemTests {
    static let statuses: [(String, Int)] = [
        ("offline-miss", 504), ("upstream-error", 502), ("upstream-timeout", 504), ("busy", 503), ("not-queueable", 503),
        ("outbox-full", 507),
        ("no-room", 507), ("key-reused", 422), ("only-if-cached", 504), ("bad-request", 400), ("head-too-large", 431),
        ("body-too-large", 413), ("forbidden-target", 403), ("loop", 508), ("misdirected", 421), ("unauthorized", 401),
        ("not-found", 404), ("method-not-allowed", 405), ("unsupported-media-type", 415), ("conflict", 409), ("precondition-failed", 412),
        ("unprocessable", 422), ("proxy-unauthorized", 407), ("too-many-attempts", 429), ("too-many-repeats", 429), ("tls-required", 403),
    ]

    @Test(arguments: statuses)
    func everyTypeHasItsStatus(name: String, status: Int) throws {
        let type = try #require(ProblemType(rawValue: name))
        let (head, body) = Problem(type, detail: "d").response
        let json = try JSONValue.parse(Array(body.readableBytesView))
        #expect(head.status == status)
        #expect(head.fields[.contentType] == "application/problem+json")
        #expect(head.fields[.cacheControl] == "no-store")
        #expect(json["type"] == .string("urn:rockpool:problem:\(name)"))
        #expect(json["status"] == .number(JSONNumber(Int64(status))))
        #expect(json["title"] == .string(type.title) && !type.title.isEmpty)
    }

    @Test func noTypeIsMissing() { #expect(Set(ProblemType.allCases.map(\.rawValue)) == Set(Self.statuses.map(\.0))) }

    @Test func whatIsKnownOfTheUpstreamIsSaid() throws {
        let problem = Problem(.notQueueable, detail: "said \"no\"", upstream: "notes", error: "connection_refused", retryAfter: 5)
        let (head, body) = problem.response
        let json = try JSONValue.parse(Array(body.readableBytesView))
        #expect(head.fields[.retryAfter] == "5")
        #expect(json["detail"] == .string("said \"no\""))
        #expect(json["upstream"] == .string("notes"))
        #expect(json["error"] == .string("connection_refused"))
    }

    @Test func whatIsNotKnownIsLeftOut() throws {
        let (head, body) = Problem(.notFound, detail: "d").response
        let json = try JSONValue.parse(Array(body.readableBytesView))
        #expect(head.fields[.retryAfter] == nil)
        #expect(json["upstream"] == nil && json["error"] == nil)
    }

    @Test func aRefusalKeepsItsStatusAndWords() throws {
        let (head, body) = Problem(Refusal(status: 414, problem: "target-too-long", detail: "long")).response
        let json = try JSONValue.parse(Array(body.readableBytesView))
        #expect(head.status == 414)
        #expect(json["type"] == .string("urn:rockpool:problem:target-too-long"))
        #expect(json["detail"] == .string("long"))
    }
}
