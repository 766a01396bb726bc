// Writes of telemetry routes: their lanes, their order among others, their end, and the replies to them (docs/outbox.md#telemetry).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct TelemetryTests {
    private let start = Timestamp(seconds: 1_800_000_000)

    private func lane(_ number: Int64) -> String { Lane.telemetry(upstream: "api", route: "POST /v1/*", number: number) }

    private func summary(_ number: Int64, state: OperationState = .pending, expiresAt: Timestamp? = nil) -> OperationSummary {
        var summary = OperationSummary(
            sequence: number, id: "0197d6f0-0000-7000-8000-00000000000\(number)", state: state, lane: lane(number), upstream: "api",
            acceptedAt: start, nextAttemptAt: start, expiresAt: expiresAt)
        summary.order(in: lane(number), entity: nil, isCreate: false, address: nil)
        return summary
    }

    @Test func theLanesOfARouteSortByTheirNumbers() {
        #expect(
            lane(9) < lane(10) && lane(10) < lane(1_700_000_000_000_000) && lane(0) < lane(.max) && lane(.max).hasSuffix("\(Int64.max)"))
        #expect(Lane.telemetryQueue(of: lane(7)) == Lane.telemetryQueue(upstream: "api", route: "POST /v1/*"))
        #expect(Lane.route(ofQueue: Lane.telemetryQueue(of: lane(7)), upstream: "api") == "POST /v1/*")
        #expect(Lane.isTelemetry(lane(1), upstream: "api") && !Lane.isTelemetry(lane(1), upstream: "ap"))
        for other in ["api", "api /#", "api *", "api * ann", "api @ ann"] { #expect(!Lane.isTelemetry(other, upstream: "api")) }
    }

    @Test func oneWaitsForNoneAndIsRepeatedWithoutALook() {
        let context = ReplayContext(idempotency: IdempotencySettings())
        var order = ReplayOrder(
            [summary(1), summary(2, state: .inflight), summary(3, state: .dead)], context: { _ in context }, now: start)
        #expect(order.blocker(of: summary(4)) == nil)
        let lost = summary(5, state: .uncertain)
        #expect(OperationMachine.settle(lost, context: context, now: start)?.state == .pending)
        #expect(!OperationMachine.isStuck(lost, context: context, now: start))
    }

    @Test(arguments: [OperationState.pending, .uncertain, .parked, .dead])
    func whatItsRouteKeepsNoLongerEnds(_ state: OperationState) {
        let one = summary(1, state: state, expiresAt: start + .hours(24))
        #expect(OperationMachine.expiry(of: one, now: start + .hours(24) - .milliseconds(1)) == nil)
        let end = OperationMachine.expiry(of: one, now: start + .hours(24))
        #expect(end?.state == .cancelled && end?.reason == .expired)
        #expect(OperationMachine.expiry(of: summary(1, state: .inflight, expiresAt: start), now: start + .hours(1)) == nil)
    }

    @Test func theRestOfItsUpstreamIsSentFirst() {
        var machine = ReplayMachine(contexts: ["api": ReplayContext(idempotency: IdempotencySettings())])
        var actions: [ReplayMachine.Action] = []
        for one in [summary(1), summary(2)] { actions += machine.step(.changed(one), now: start, random: 0) }
        let other = OperationSummary(
            sequence: 3, id: "0197d6f0-0000-7000-8000-000000000003", state: .pending, method: .put, lane: "api /a", upstream: "api",
            acceptedAt: start + .hours(1), nextAttemptAt: start)
        actions += machine.step(.changed(other), now: start + .hours(1), random: 0)
        actions += machine.step(.reachability(upstream: "api", isReachable: true), now: start + .hours(1), random: 0)
        #expect(actions == [.send(id: other.id, sequence: 3)])
    }

    // MARK: replies

    struct Known: Sendable, CustomTestStringConvertible {
        var target: String
        var type: String?
        var reply: FixedReply?
        var testDescription: String { "\(target) \(type ?? "")" }
    }

    static let known = [
        Known(target: "/v1/traces", type: "application/json", reply: FixedReply(type: "application/json", body: #"{"partialSuccess":{}}"#)),
        Known(target: "/otlp/v1/metrics", type: "application/x-protobuf", reply: FixedReply(type: "application/x-protobuf")),
        Known(target: "/api/v1/write", type: "application/x-protobuf", reply: FixedReply(status: 204)),
        Known(target: "/write?db=a", type: nil, reply: FixedReply(status: 204)),
        Known(target: "/loki/api/v1/push", type: "application/json", reply: FixedReply(status: 204)),
        Known(target: "/api/1/envelope/", type: "text/plain", reply: FixedReply(type: "application/json", body: "{}")),
        Known(
            target: "/services/collector/event", type: "application/json",
            reply: FixedReply(type: "application/json", body: #"{"text":"Success","code":0}"#)),
        Known(target: "/logs", type: "application/json", reply: nil),
    ]

    @Test(arguments: known) func aReceiverThatWasNeverSeenAnswersByItsProtocol(_ case: Known) {
        var head = RequestHead(method: .post, origin: origin, target: `case`.target)
        head.fields[.contentType] = `case`.type
        #expect(TelemetryReply.of(head) == `case`.reply)
    }

    @Test func anAnswerOfTheReceiverIsRepeatedUnlessItTellsOfOneWriteAlone() {
        func form(_ status: Int, _ body: String, _ fields: HTTPFields = [.contentType: "application/json"]) -> AnswerForm? {
            AnswerForm(telemetry: ResponseHead(status: status, fields: fields), body: Array(body.utf8))
        }
        #expect(form(200, "{}") == AnswerForm(status: 200, content: .fixed("{}"), type: "application/json"))
        #expect(form(200, #"{"code":0}"#)?.content == .fixed(#"{"code":0}"#))
        #expect(form(204, "")?.bareStatus == 204 && form(200, "")?.bareStatus == 200)
        #expect(form(200, #"{"partialSuccess":{"rejectedSpans":"5"}}"#) == nil && form(400, "") == nil)
        #expect(form(200, #"{"id":"9ec79c33"}"#) == nil && form(200, "", [.location: "/a"]) == nil)
        #expect(form(200, String(repeating: "a", count: AnswerForm.fixedLimit))?.bareStatus == nil)
        #expect(form(200, String(repeating: "a", count: AnswerForm.fixedLimit + 1)) == nil)
    }

    // MARK: the plan

    @Test func aRouteOfTelemetryQueuesWhatItsTypeWouldForbidAndConcernsNoResource() {
        var upstream = Upstream(name: "api", origin: origin)
        upstream.routes = [Route(match: "POST /v1/**", kind: .telemetry)]
        upstream.resources = [Resource(collection: "/v1/traces", item: "/v1/traces/{id}")]
        var configuration = Configuration()
        configuration.upstreams = [upstream]
        let table = RouteTable(configuration)
        var head = RequestHead(method: .post, origin: origin, target: "/v1/traces")
        head.fields[.contentType] = "application/x-protobuf"
        let plan = table.plan(for: head)
        #expect(plan.isTelemetry && plan.queueable && plan.entity == nil)
        head.method = .get
        #expect(!table.plan(for: head).isTelemetry && table.plan(for: head).entity != nil)
        #expect(upstream.routes[0].telemetry == TelemetrySettings(keep: .hours(24), limit: .mb(50)))
    }
}
