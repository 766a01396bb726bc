// What a client asks beside its write, and what stays of the fields (contract §3, RFC 7240).
import HTTPTypes
import RockpoolCore
import Testing

@testable import RockpoolEngine

struct WishesTests {
    private let now = Timestamp(seconds: 1_767_225_600)

    private func wishes(_ fields: HTTPFields) -> WriteWishes {
        var fields = fields
        return WriteWishes(taking: &fields, now: now)
    }

    @Test func withoutFieldsTheDefaultsHold() {
        let none = wishes([:])
        #expect(none.policy == .queue && none.priority == 0 && none.expiresAt == nil)
        #expect(!none.respondsAsync && none.wait == nil)
    }

    @Test(arguments: [("queue", "queue"), ("No-Queue", "no-queue"), ("require-remote", "require-remote"), ("nonsense", "queue")])
    func policies(value: String, policy: String) { #expect(wishes([.own("Policy"): value]).policy.rawValue == policy) }

    @Test(arguments: [("5", 5), ("-100", -100), ("101", 100), ("-9999", -100), ("x", 0), ("99999999999999999999", 0)])
    func priorities(value: String, priority: Int) { #expect(wishes([.own("Priority"): value]).priority == priority) }

    @Test(
        arguments: [
            ("60", 60), ("-5", 0), ("Thu, 01 Jan 2026 00:01:00 GMT", 60), ("soon", nil), ("9223372036854775807", .max),
        ] as [(String, Int64?)])
    func expiries(value: String, seconds: Int64?) {
        #expect(wishes([.own("Expires"): value]).expiresAt == seconds.map { now + .seconds($0) })
    }

    @Test(
        arguments: [
            ("respond-async", true, nil), ("wait=5", false, 5), ("respond-async, wait=10", true, 10),
            ("Respond-Async ; x , WAIT = 3", false, 3),
            ("wait=9999", false, 60), ("wait=-1", false, 0), ("wait=x", false, nil), ("handling=lenient", false, nil),
        ] as [(String, Bool, Int64?)])
    func preferences(value: String, isAsync: Bool, wait: Int64?) {
        let read = wishes([.prefer: value])
        if !value.contains(";") { #expect(read.respondsAsync == isAsync) }
        #expect(read.wait == wait.map { .seconds($0) })
    }

    @Test func onlyOurOwnFieldsAreTaken() {
        var fields: HTTPFields = [.accept: "a", .own("Group"): "g", .own("No-Merge"): "true", .contentType: "t"]
        _ = WriteWishes(taking: &fields, now: now)
        #expect(fields == [.accept: "a", .contentType: "t"])
    }
}
