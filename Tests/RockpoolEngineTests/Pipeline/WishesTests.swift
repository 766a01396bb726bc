// A client's preferences for its write, and the remaining request fields (docs/reference/headers.md#request-fields, RFC 7240).
import HTTPTypes
import RockpoolCore
import Testing

@testable import RockpoolEngine

struct WishesTests {
    private let now = Timestamp(seconds: 1_767_225_600)

    private func wishes(_ fields: HTTPFields) throws(Refusal) -> WritePreferences {
        var fields = fields
        return try WritePreferences(taking: &fields, now: now)
    }

    @Test func withoutFieldsTheDefaultsHold() throws {
        let none = try wishes([:])
        #expect(none.policy == .queue && none.priority == 0 && none.expiresAt == nil)
        #expect(!none.respondsAsync && none.wait == nil)
    }

    @Test(arguments: [("queue", "queue"), ("No-Queue", "no-queue"), ("require-remote", "require-remote")])
    func policies(value: String, policy: String) throws { #expect(try wishes([.own("Policy"): value]).policy.rawValue == policy) }

    @Test(arguments: [("5", 5), ("-100", -100), ("100", 100), ("0", 0)])
    func priorities(value: String, priority: Int) throws { #expect(try wishes([.own("Priority"): value]).priority == priority) }

    @Test(arguments: [("60", 60), ("0", 0), ("Thu, 01 Jan 2026 00:01:00 GMT", 60), ("9223372036854775807", .max)] as [(String, Int64)])
    func expiries(value: String, seconds: Int64) throws {
        #expect(try wishes([.own("Expires"): value]).expiresAt == now + .seconds(seconds))
    }

    /// A preference that cannot be honoured is refused, not guessed.
    @Test(arguments: [
        ("Policy", "nonsense"), ("Priority", "101"), ("Priority", "-101"), ("Priority", "x"), ("Priority", "99999999999999999999"),
        ("Expires", "-5"), ("Expires", "soon"),
    ])
    func badValuesAreRefused(name: String, value: String) {
        let refusal = #expect(throws: Refusal.self) { try wishes([.own(name): value]) }
        #expect(refusal?.status == 400 && refusal?.detail.contains("Rockpool-\(name)") == true)
    }

    @Test(
        arguments: [
            ("respond-async, wait=10", nil), ("handling=lenient, wait=1", "handling=lenient"), ("return=minimal", "return=minimal"),
        ] as [(String, String?)])
    func otherPreferencesAreTheUpstreams(value: String, rest: String?) throws {
        var fields: HTTPFields = [.prefer: value]
        _ = try WritePreferences(taking: &fields, now: now)
        #expect(fields[.prefer] == rest)
    }

    @Test(
        arguments: [
            ("respond-async", true, nil), ("wait=5", false, 5), ("respond-async, wait=10", true, 10),
            ("Respond-Async ; x , WAIT = 3", true, 3), (#"respond-async;foo="a", wait="7""#, true, 7),
            ("wait=9999", false, 60), ("wait=-1", false, 0), ("wait=x", false, nil), ("handling=lenient", false, nil),
        ] as [(String, Bool, Int64?)])
    func preferences(value: String, isAsync: Bool, wait: Int64?) throws {
        let read = try wishes([.prefer: value])
        #expect(read.respondsAsync == isAsync)
        #expect(read.wait == wait.map { .seconds($0) })
    }

    @Test func onlyOurOwnFieldsAreTaken() throws {
        var fields: HTTPFields = [.accept: "a", .own("Group"): "g", .own("No-Merge"): "true", .contentType: "t"]
        _ = try WritePreferences(taking: &fields, now: now)
        #expect(fields == [.accept: "a", .contentType: "t"])
    }
}
