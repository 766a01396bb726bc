// Answers of 2xx that are no success: by a declared rule, by the parts of a 207, and answers about something else
// (docs/outbox.md#no-success).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct AnswerFailureTests {
    private static let json: HTTPFields = [.contentType: "application/json"]

    private func failure(
        _ status: Int, _ body: String?, _ rule: SuccessRule?, _ fields: HTTPFields = AnswerFailureTests.json
    ) -> AnswerFailure? {
        AnswerFailure.of(ResponseHead(status: status, fields: fields), body: body.map { Array($0.utf8) }, by: rule)
    }

    @Test func aStatusOutsideTheListIsNoSuccess() {
        let rule = SuccessRule(status: [200, 204])
        #expect(failure(204, nil, rule) == nil && failure(200, "{}", rule) == nil)
        #expect(failure(202, "{}", rule)?.detail == "202 is no success of this route")
        #expect(failure(422, "{}", rule) == nil, "other statuses keep their meaning")
    }

    @Test(arguments: [
        (#"{}"#, true), (#"{"errors":null}"#, true), (#"{"errors":[]}"#, true), (#"{"errors":[1]}"#, false), (#"[]"#, true), ("", true),
        (#"{"errors":["#, true),
    ])
    func aMemberThatMustBeAbsent(_ body: String, isSuccess: Bool) {
        #expect((failure(200, body, SuccessRule(pointer: "/errors", absent: true)) == nil) == isSuccess)
    }

    @Test(arguments: [(#"{"id":1}"#, true), (#"{"id":null}"#, false), (#"{"id":[]}"#, false), (#"{}"#, false)])
    func aMemberThatMustBeThere(_ body: String, isSuccess: Bool) {
        #expect((failure(200, body, SuccessRule(pointer: "/id", absent: false)) == nil) == isSuccess)
    }

    @Test(arguments: [
        (#"{"success":true}"#, true), (#"{"success":false}"#, false), (#"{"success":"true"}"#, false), (#"{}"#, false), (#"{"succ"#, true),
    ])
    func aMemberThatMustHaveAValue(_ body: String, isSuccess: Bool) {
        #expect((failure(200, body, SuccessRule(pointer: "/success", equals: true)) == nil) == isSuccess)
    }

    @Test func anAnswerWithoutABodyAnEncodedOneAndOneThatIsNotAtHandAreNotJudgedByTheirBody() {
        let rule = SuccessRule(pointer: "/success", equals: true)
        #expect(failure(204, "", rule, [:]) == nil && failure(205, "", rule, [:]) == nil && failure(200, nil, rule) == nil)
        #expect(failure(200, "x", rule, [.contentType: "application/json", .contentEncoding: "gzip"]) == nil)
        #expect(failure(200, "done", rule, [.contentType: "text/plain"]) != nil)
    }

    @Test(arguments: [
        (#"{"results":[{"status":201},{"status":422}]}"#, 422), (#"[{"statusCode":"409"}]"#, 409),
        (#"{"data":{"items":[{"status":"HTTP/1.1 507 Insufficient Storage"}]}}"#, 507), (#"{"results":[{"status":201}]}"#, nil),
        (#"{"status":422}"#, nil), (#"{"results":["#, nil), (#"[{"code":"E422"}]"#, nil),
    ])
    func aPartOfA207ThatFailed(_ body: String, _ status: Int?) {
        let failed = failure(207, body, nil)
        #expect(failed?.detail == status.map { "207: a part of it failed with \($0)" })
        #expect(failed?.isPartial ?? true)
    }

    @Test func theStatusLinesOfAMultistatusDocument() {
        let body = { (line: String) in
            "<D:multistatus><D:response><D:status>HTTP/1.1 200 OK</D:status></D:response><D:response>\n<D:status> \(line)</D:status>"
        }
        let xml: HTTPFields = [.contentType: "application/xml"]
        #expect(failure(207, body("HTTP/1.1 423 Locked"), nil, xml)?.detail == "207: a part of it failed with 423")
        #expect(failure(207, body("HTTP/1.1 204 No Content"), nil, xml) == nil)
    }

    // MARK: a queued write

    @Test func aRefusalWithAStatusOfSuccessIsDead() {
        var rule = context()
        rule.reading = AnswerReading(success: SuccessRule(pointer: "/success", equals: true))
        let refused = judged(operation(.patch), answer(200, Self.json), body: #"{"success":false}"#, context: rule)
        #expect(refused.state == .dead && refused.reason == .rejected && refused.countsAsAnswered)
        #expect(refused.detail == "200: /success of the answer is not true")
        #expect(judged(operation(.patch), answer(200, Self.json), body: #"{"success":true}"#, context: rule).state == .delivered)
        #expect(judged(operation(.patch), answer(207, Self.json), body: #"[{"status":422}]"#).state == .dead)
    }

    @Test func anAnswerAboutSomethingElseIsDeliveredWithANote() {
        var rule = context()
        rule.reading = AnswerReading(isForeign: true)
        let delivered = judged(operation(.patch), answer(200, Self.json), body: #"{"ok":1}"#, context: rule)
        #expect(delivered.state == .delivered && delivered.detail == "200: the answer does not describe the entity")
    }

    @Test func aRuleHoldsForTheResultsOfABatch() {
        var rule = context()
        rule.reading = AnswerReading(success: SuccessRule(pointer: "/success", equals: true))
        let state = { (result: String) in
            BatchPush.disposition(
                of: operation(), after: BatchAnswer(answer(200, Self.json), body: Array(#"{"results":[\#(result)]}"#.utf8)),
                context: rule, now: noon, random: 0.5
            ).change.state
        }
        #expect(state(#"{"id":"op","status":200,"body":{"success":false}}"#) == .dead)
        #expect(state(#"{"id":"op","status":200,"body":{"success":true}}"#) == .delivered)
        #expect(state(#"{"id":"op","status":200}"#) == .delivered, "a result without a body has its status alone")
    }

    // MARK: the effect of an answered write

    private func write(_ status: Int, _ answer: String, _ body: String = #"{"title":"new"}"#, rule: SuccessRule? = nil) -> AnsweredWrite {
        let origin = OriginAddress(scheme: .http, host: "api.test")
        let request = RequestHead(method: .put, origin: origin, target: "/notes/1", fields: Self.json)
        var write = AnsweredWrite(
            request: request, body: Array(body.utf8), answer: ResponseHead(status: status, fields: Self.json),
            answerBody: Array(answer.utf8))
        write.entity = EntityMatch(
            resource: Resource(collection: "/notes", item: "/notes/{id}"), path: "/notes/1", id: "1", isItem: true, collection: "/notes")
        write.success = rule
        return write
    }

    @Test func aFailureLeavesNoEffectAndAPartialOneAnUnknownOne() {
        let rule = SuccessRule(pointer: "/success", equals: true)
        #expect(write(200, #"{"success":false}"#, rule: rule).outcome == .none)
        #expect(write(200, #"{"success":true}"#, rule: rule).outcome == .applied)
        #expect(write(207, #"[{"status":500}]"#).outcome == .partial)
        #expect(write(200, #"{"success":false}"#).outcome == .applied, "only a declared rule says so")
    }

    @Test func anAnswerWithoutTheIdAndTheMembersIsForeign() {
        #expect(write(200, #"{"success":false}"#).isForeign)
        #expect(!write(200, #"{"id":1,"title":"other"}"#).isForeign)
        #expect(!write(200, #"{"title":"new","at":1}"#).isForeign)
        #expect(!write(204, "").isForeign && !write(200, "[]").isForeign && !write(422, #"{"x":1}"#).isForeign)
        #expect(!write(200, #"{"success":true}"#, rule: SuccessRule(pointer: "/success", equals: true)).isForeign)
    }
}
