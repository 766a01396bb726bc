// Notices: limits, folding and signatures (docs/guide/operating.md#alarms, docs/outbox.md#messages).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct NoticeGateTests {
    private let start = Timestamp(milliseconds: 1_000_000)

    private func dead(_ id: String, upstream: String = "notes", line: Int64 = 0) -> Notice {
        var notice = Notice(.dead, upstream: upstream)
        (notice.operations, notice.line, notice.cause) = ([id], line, "422")
        return notice
    }

    @Test func theFirstIsSentAndTheNextOnesAreFolded() {
        var gate = NoticeGate(every: .seconds(60))
        #expect(gate.admit(dead("a", line: 7), now: start)?.operations == ["a"])
        for number in 0..<12 { #expect(gate.admit(dead("b\(number)", line: 8 + Int64(number)), now: start + .seconds(1)) == nil) }
        #expect(gate.admit(dead("c", upstream: "other"), now: start) != nil, "each upstream has its own period")
        #expect(gate.firstHeldLine == 8)
        #expect(gate.due(now: start + .seconds(59)).isEmpty)
        let folded = gate.due(now: start + .seconds(60))
        #expect(folded.count == 1 && folded[0].count == 12 && folded[0].operations.count == Notice.operationLimit)
        #expect(folded[0].next == "rockpool outbox ls --state dead --upstream notes")
        #expect(folded[0].summary == "12 queued writes to notes are dead: 422")
        #expect(gate.firstHeldLine == nil)
        #expect(gate.admit(dead("d"), now: start + .seconds(61)) == nil, "a folded notice begins a period")
        #expect(gate.due(now: start + .seconds(200)).map(\.count) == [1])
        #expect(gate.due(now: start + .seconds(300)).isEmpty)
        #expect(gate.admit(dead("e"), now: start + .seconds(301)) != nil)
    }

    @Test func aLimitIsToldWhenItIsPassed() {
        var (rule, standing) = (NoticeRule(), StandingNotices())
        rule.on = [.storage, .away, .oldestPending]
        var readings = NoticeReadings()
        (readings.dataBytes, readings.dataLimitBytes) = (89, 100)
        readings.absent = [("notes", .minutes(4), nil)]
        readings.oldest = ("id", "notes", .minutes(9), nil)
        #expect(readings.notices(for: rule).isEmpty)
        readings.dataBytes = 90
        readings.absent = [("notes", .minutes(5), "connection_refused")]
        readings.oldest = ("id", "notes", .minutes(10), nil)
        let notices = readings.notices(for: rule)
        #expect(
            notices.map(\.summary) == [
                "A queued write to notes has waited for 10m", "The state directory holds 90% of storage.data_limit",
                "notes has not answered for 5m: connection_refused",
            ])
        #expect(standing.news(notices).count == 3)
        #expect(standing.news(notices).isEmpty)
        #expect(standing.news([]).isEmpty)
        #expect(standing.news(notices).count == 3, "a limit that was kept again is told again")
    }

    @Test func secretsAreBase64OrText() throws {
        let code: @Sendable ([UInt8], [UInt8]) -> [UInt8] = { message, key in key + [0] + message }
        let signature = try #require(WebhookSignature(secrets: "whsec_YWJj\nother", code: code))
        let fields = signature.fields(id: "m1", at: Timestamp(milliseconds: 1_234_567), body: Array("{}".utf8))
        let first = "v1," + Base64.encode(Array("abc\0m1.1234.{}".utf8)), second = "v1," + Base64.encode(Array("other\0m1.1234.{}".utf8))
        #expect(fields[.webhookSignature] == "\(first) \(second)")
        #expect(fields[.webhookTimestamp] == "1234" && fields[.webhookID] == "m1")
        for wrong in ["", " \n", "whsec_", "whsec_!!"] { #expect(WebhookSignature(secrets: wrong, code: code) == nil, "\(wrong)") }
    }

    @Test func receiversHaveNamesThatNoUpstreamHas() {
        let origin = OriginAddress(scheme: .https, host: "hooks.example")
        #expect(ReceiverKind.webhook.upstreamName(of: origin) == "webhook:https://hooks.example")
        #expect(ReceiverKind(upstream: "callback:http://a") == .callback)
        for name in ["webhook", "notes", "https://a", "webhook:", "hook:http://a"] { #expect(ReceiverKind(upstream: name) == nil) }
        var configuration = Configuration()
        configuration.callbacks.origins = [origin, origin]
        configuration.notify = [NoticeRule()]
        configuration.notify[0].webhook = WebhookSettings(url: "https://hooks.example/x", secretFile: "/s")
        let routes = RouteTable(configuration)
        #expect(routes.upstreams.map(\.name) == ["callback:https://hooks.example", "webhook:https://hooks.example"].sorted().reversed())
        #expect(routes.upstreams.allSatisfy { !$0.isDeclared } && routes.upstream(for: origin) == nil)
    }
}
