// The request of a batch, and the outcome of each operation in its response (docs/guide/sync.md; docs/outbox.md#batch-push).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct BatchPushTests {
    static let now = Timestamp(seconds: 1_767_225_600)

    static func operation(_ method: HTTPRequest.Method = .post, _ fields: HTTPFields = [:]) -> QueuedWrite {
        let request = RequestHead(
            method: method, origin: OriginAddress(scheme: .http, host: "api.test"), target: "/v1/notes/1", fields: fields)
        return QueuedWrite(
            sequence: 1, id: "a", state: .inflight, request: request, body: .none, upstream: "notes", lane: "l", idempotencyKey: "k",
            acceptedAt: now, firstSentAt: now, nextAttemptAt: now)
    }

    private func judged(
        _ operation: QueuedWrite, _ outcome: AttemptOutcome, _ body: String = "",
        honoured: IdempotencySettings.Honoured = .unknown
    ) -> (outcome: AttemptOutcome, body: [UInt8], change: Disposition) {
        var idempotency = IdempotencySettings()
        idempotency.honoured = honoured
        return BatchPush.disposition(
            of: operation, after: BatchAnswer(outcome, body: Array(body.utf8)), context: ReplayContext(idempotency: idempotency),
            now: Self.now, random: 0.5)
    }

    @Test func anOperationIsWrittenWithWhatItDependsOn() throws {
        let operation = Self.operation(.patch, [.ifMatch: "\"7\"", .contentType: "application/merge-patch+json", .authorization: "secret"])
        let member = try #require(BatchPush.member(operation, body: Array(#"{"n":1.50}"#.utf8)))
        #expect(
            String(decoding: BatchPush.body(of: [member]), as: UTF8.self)
                == #"{"operations":[{"id":"a","idempotencyKey":"k","method":"PATCH","entity":"/v1/notes/1","ifMatch":"\"7\"","contentType":"application/merge-patch+json","body":{"n":1.50}}]}"#
        )
        #expect(BatchPush.member(operation, body: Array("plain".utf8)) == nil)
        #expect(BatchPush.member(Self.operation(.delete), body: [])?["body"] == nil)
    }

    private static let graph: BatchFormat = {
        var format = BatchFormat()
        format.body = #"{"v":1,"requests":"{operations}"}"#
        format.operation =
            #"{"id":"{id}","method":"{method}","url":"/x{target}","headers":{"If-Match":"{ifMatch}"},"tags":["{ifNoneMatch}",7],"body":"{body}"}"#
        (format.results, format.status, format.headers, format.answer) = ("/responses", "/http/code", "/h", "/content")
        return format
    }()

    @Test func aTemplateGivesTheFormOfTheBatch() throws {
        #expect(BatchFormat().faults.isEmpty && Self.graph.faults.isEmpty)
        let format = CompiledBatchFormat(Self.graph)
        let operation = Self.operation(.put, [.ifMatch: "\"7\"", .contentType: "application/json"])
        let member = try #require(BatchPush.member(operation, body: Array(#"{"n":"{id}"}"#.utf8), format: format))
        #expect(
            String(decoding: BatchPush.body(of: [member], format: format), as: UTF8.self)
                == #"{"v":1,"requests":[{"id":"a","method":"PUT","url":"/x/v1/notes/1","headers":{"If-Match":"\"7\""},"tags":[7],"body":{"n":"{id}"}}]}"#
        )
        let answer = #"{"responses":[{"id":"a","http":{"code":"201"},"h":{"Location":"/v1/notes/9"},"content":{"id":9}}]}"#
        let (outcome, body, change) = BatchPush.disposition(
            of: operation, after: BatchAnswer(.answered(ResponseHead(status: 200)), body: Array(answer.utf8), format: format),
            context: ReplayContext(idempotency: IdempotencySettings()), now: Self.now, random: 0.5)
        guard case .answered(let head) = outcome else { return #expect(Bool(false)) }
        #expect(head.status == 201 && head.fields[.location] == "/v1/notes/9" && change.state == .delivered)
        #expect(String(decoding: body, as: UTF8.self) == #"{"id":9}"#)
    }

    /// What a template has no name for is not lost: the operation goes alone.
    @Test(
        arguments: [
            ([.contentType: "application/merge-patch+json"], false), ([.ifNoneMatch: "*", .contentType: "application/json"], true),
            ([.contentType: "application/json; charset=utf-8"], true),
        ] as [(HTTPFields, Bool)])
    func whatATemplateHasNoPlaceForGoesAlone(fields: HTTPFields, isMember: Bool) {
        #expect(
            (BatchPush.member(Self.operation(.put, fields), body: Array("{}".utf8), format: CompiledBatchFormat(Self.graph)) != nil)
                == isMember)
        var format = BatchFormat()
        format.operation = #"{"id":"{id}","method":"{method}","url":"{url}"}"#
        let bare = CompiledBatchFormat(format)
        #expect(BatchPush.member(Self.operation(.put, fields), body: Array("{}".utf8), format: bare) == nil)
        #expect(BatchPush.member(Self.operation(.delete), body: [], format: bare) != nil)
    }

    /// The response of a batch is read once, for all of its operations, and the first result of each counts.
    @Test func oneReadingOfTheResponseHoldsAllResults() {
        let results = (0..<BatchPush.limit).map { #"{"id":"\#($0)","status":\#(200 + $0)}"# } + [#"{"id":"0","status":500}"#]
        let body = Array(#"{"results":[\#(results.joined(separator: ","))]}"#.utf8)
        guard case .each(let read) = BatchAnswer(.answered(ResponseHead(status: 200)), body: body).verdict else {
            return #expect(Bool(false))
        }
        #expect(read.count == BatchPush.limit && read.allSatisfy { $1.head.status == 200 + (Int($0) ?? -1) })
        #expect(BatchAnswer(.failed(TransferFailure(kind: .reset, sent: .maybe, detail: "cut")), body: []).verdict == nil)
    }

    @Test(arguments: [
        ("[]", #"["{id}","{method}","{url}"]"#, ["body"]), (#"["{operations}"]"#, #"["{id}","{url}"]"#, ["operation"]),
        (#"["{operations}"]"#, #"["{id}","{method}","{url}","{x}"]"#, ["operation"]), ("{", "{", ["body", "operation"]),
    ])
    func faultsOfTemplates(body: String, operation: String, keys: [String]) {
        var format = BatchFormat()
        (format.body, format.operation) = (body, operation)
        #expect(format.faults.map(\.key) == keys)
    }

    @Test(
        arguments: [
            (#"{"results":[{"id":"a","status":201,"headers":{"Location":"/v1/notes/9"},"body":{"id":"9"}}]}"#, .delivered, nil),
            (#"{"results":[{"id":"a","status":422}]}"#, .dead, .rejected),
            (#"{"results":[{"id":"a","status":409}]}"#, .conflicted, .editEdit),
            (#"{"results":[{"id":"a","status":401}]}"#, .dead, .rejected), (#"{"results":[{"id":"a","status":429}]}"#, .pending, nil),
            // An operation without a result counts as one with a lost response.
            (#"{"results":[]}"#, .uncertain, .lostAnswer), ("", .uncertain, .lostAnswer),
            (#"{"results":[{"id":"a"}]}"#, .uncertain, .lostAnswer),
            (#"{"results":[{"id":"a","status":9999999999999}]}"#, .uncertain, .lostAnswer),
        ] as [(String, OperationState, OperationReason?)])
    func eachHasItsOwnAnswer(_ body: String, _ state: OperationState, _ reason: OperationReason?) {
        let (_, _, change) = judged(Self.operation(), .answered(ResponseHead(status: 200)), body)
        #expect(change.state == state && change.reason == reason)
    }

    @Test func aResultIsKeptAsAnAnswer() {
        let (outcome, body, _) = judged(
            Self.operation(), .answered(ResponseHead(status: 200)),
            #"{"results":[{"id":"a","status":201,"headers":{"Location":"/v1/notes/9","Bad Name":"x"},"body":{"id":"9"}}]}"#)
        guard case .answered(let head) = outcome else { return #expect(Bool(false)) }
        #expect(head.status == 201 && head.fields[.location] == "/v1/notes/9" && head.fields.count == 2)
        #expect(String(decoding: body, as: UTF8.self) == #"{"id":"9"}"#)
    }

    @Test(arguments: [400, 404, 405, 409, 412, 413, 415, 422, 501, 505]) func aRefusedBatchEndsNoOperation(_ status: Int) {
        let (_, _, change) = judged(Self.operation(), .answered(ResponseHead(status: status)))
        #expect(change.state == .pending && !change.countsAsAnswered && change.nextAttemptAt == Self.now)
    }

    @Test(
        arguments: [
            (401, .dead), (429, .pending), (503, .pending), (500, .uncertain), (502, .uncertain), (302, .uncertain), (204, .uncertain),
        ] as [(Int, OperationState)])
    func otherAnswersAreEveryOperationsOwn(_ status: Int, _ state: OperationState) {
        #expect(judged(Self.operation(), .answered(ResponseHead(status: status))).change.state == state)
    }

    @Test(arguments: [TransferFailure.Sent.no, .maybe, .yes], [HTTPRequest.Method.post, .put])
    func aLostBatchLeavesEachAsALostAnswerOfItsOwn(_ sent: TransferFailure.Sent, _ method: HTTPRequest.Method) {
        let operation = Self.operation(method)
        let outcome = AttemptOutcome.failed(TransferFailure(kind: .reset, sent: sent))
        for honoured in [IdempotencySettings.Honoured.yes, .unknown] {
            var idempotency = IdempotencySettings()
            idempotency.honoured = honoured
            let alone = OperationMachine.disposition(
                of: operation, after: outcome, context: ReplayContext(idempotency: idempotency), now: Self.now, random: 0.5)
            #expect(judged(operation, outcome, honoured: honoured).change == alone)
        }
    }
}
