// Every strategy with every kind of conflict, and the request that writes its outcome to the upstream (docs/outbox.md#strategies,
// docs/outbox.md#result).
import HTTPTypes
import RockpoolCore
import Testing

private let mergePatch = "application/merge-patch+json"
private let jsonPatch = "application/json-patch+json"

@Suite struct ConflictVerdictTests {
    private static let base = #"{"id":"1","a":1,"b":1,"updatedAt":"2026-01-01T00:00:00.500Z"}"#
    private static let theirs = #"{"id":"1","a":1,"b":3,"updatedAt":"2026-01-02T00:00:00.500Z"}"#
    private static let mine = #"{"id":"1","a":2,"b":2}"#

    /// Returns the write of each kind, in conflict with a change of the same field by another client.
    private static func met(_ kind: Conflict.Kind, _ strategy: Resource.Conflict, isLater: Bool? = nil) -> ConflictCase {
        let resource = Resource.merging(strategy)
        var met =
            switch kind {
            case .editEdit: ConflictCase(.put, mine, base: base, theirs: theirs, resource)
            case .editDelete: ConflictCase(.put, mine, base: base, theirs: nil, resource, status: 404)
            case .deleteEdit: ConflictCase(.delete, "", base: base, theirs: theirs, resource)
            case .createCreate: ConflictCase(.put, mine, base: nil, theirs: theirs, resource)
            }
        if kind == .createCreate { met.request.fields[.ifNoneMatch] = "*" }
        let moment = RFC3339.parse("2026-01-02T00:00:00.500Z") ?? noon
        guard let isLater else {
            met.acceptedAt = moment
            if case .present(let side, let head) = met.theirs {
                let undated = String(decoding: side.body, as: UTF8.self).replacing(#","updatedAt":"2026-01-02T00:00:00.500Z""#, with: "")
                met.theirs = .present(Conflict.Side(undated, etag: side.etag), head)
            }
            return met
        }
        met.deletedAt = kind == .editDelete ? moment : nil
        met.acceptedAt = moment + .milliseconds(isLater ? 1 : 0)
        return met
    }

    static let put = #"PUT /notes/1 if-match="2" {"id":"1","a":2,"b":2}"#
    static let again = #"PUT /notes/1 if-none-match=* {"id":"1","a":2,"b":2}"#
    static let delete = #"DELETE /notes/1 if-match="2""#
    static let post = #"POST /notes {"a":2,"b":2}"#

    @Test(
        arguments: [
            (.serverWins, nil, ["yield", "yield", "yield", "yield"]), (.clientWins, nil, [put, again, delete, put]),
            (.lastWriteWins, true, [put, again, delete, put]), (.lastWriteWins, false, ["yield", "yield", "yield", "yield"]),
            (.lastWriteWins, nil, ["ask", "ask", "ask", "ask"]), (.fieldMerge, true, ["ask", "ask", "ask", "ask"]),
            (.keepBoth, nil, [post, post, "yield", post]), (.ask, true, ["ask", "ask", "ask", "ask"]),
        ] as [(Resource.Conflict, Bool?, [String])])
    func strategies(_ strategy: Resource.Conflict, isLater: Bool?, lines: [String]) {
        for (kind, line) in zip(Conflict.Kind.allCases, lines) {
            let verdict = Self.met(kind, strategy, isLater: isLater).verdict()
            #expect(verdict.line == line, "\(kind)")
            #expect(verdict.kind == kind)
            let resolution: Conflict.Resolution? =
                line == "ask" ? nil : line == "yield" ? .theirs : line == Self.post ? .both : .mine
            #expect(verdict.resolution == resolution && verdict.decidedBy == (resolution == nil ? nil : .strategy), "\(kind)")
            #expect(verdict.detection == .strong)
            // Both sides are recorded, whichever side was chosen.
            #expect((verdict.mine == nil) == (kind == .deleteEdit) && (verdict.theirs == nil) == (kind == .editDelete))
            #expect((verdict.base == nil) == (kind == .createCreate))
        }
    }

    /// Method, media type, sent body, and the request after the merge with theirs.
    @Test(
        arguments: [
            (.put, "application/json", #"{"a":2,"b":1}"#, #"PUT /notes/1 if-match="2" {"a":2,"b":3}"#),
            (
                .put, "application/json", #"{"id":"1","a":2,"b":1,"updatedAt":"x"}"#,
                #"PUT /notes/1 if-match="2" {"id":"1","a":2,"b":3,"updatedAt":"2026-01-02T00:00:00.500Z"}"#
            ),
            (.patch, mergePatch, #"{"a":2}"#, #"PATCH /notes/1 if-match="2" {"a":2}"#),
            (.patch, mergePatch, #"{"a":null,"c":{"x":1}}"#, #"PATCH /notes/1 if-match="2" {"c":{"x":1},"a":null}"#),
            (.patch, "application/json", #"{"a":2}"#, #"PATCH /notes/1 if-match="2" {"a":2}"#),
            (
                .patch, jsonPatch, #"[{"op":"replace","path":"/a","value":2},{"op":"add","path":"/c","value":null}]"#,
                #"PATCH /notes/1 if-match="2" [{"op":"replace","path":"/a","value":2},{"op":"add","path":"/c","value":null}]"#
            ),
            (.patch, jsonPatch, #"[{"op":"test","path":"/b","value":1},{"op":"replace","path":"/a","value":2}]"#, "ask"),
            (
                .patch, jsonPatch, #"[{"op":"test","path":"/a","value":1},{"op":"remove","path":"/a"}]"#,
                #"PATCH /notes/1 if-match="2" [{"op":"remove","path":"/a"}]"#
            ),
            (.patch, jsonPatch, #"[{"op":"replace","path":"/nowhere","value":2}]"#, "ask"),
            (.patch, mergePatch, #"{"b":2}"#, "ask"), (.put, "application/json", #"{"a":2}"#, "ask"),
            // The change exists upstream already, completely or as far as mine changes it.
            (.put, "application/json", #"{"id":"1","a":1,"b":3}"#, "delivered"), (.patch, mergePatch, #"{"b":3}"#, "delivered"),
            (.patch, jsonPatch, #"[{"op":"replace","path":"/b","value":3}]"#, "delivered"),
            (.put, "application/json", #"{"a":1,"b":1}"#, "delivered"), (.patch, mergePatch, "{}", "delivered"),
            (.put, "text/plain", "hello", "ask"), (.put, "application/json", "{", "ask"), (.put, "application/json", "[1]", "ask"),
        ] as [(HTTPRequest.Method, String, String, String)])
    func fieldMerges(_ method: HTTPRequest.Method, _ type: String, _ body: String, _ line: String) {
        let verdict = ConflictCase(method, body, base: Self.base, theirs: Self.theirs, type: type).verdict()
        #expect(verdict.line == line)
        #expect(verdict.resolution == (verdict.resend == nil ? nil : .merged))
    }

    /// A merge patch cannot express a null that the result has and theirs lacks, or an object that a patch would interpret as a change.
    @Test(
        arguments: [
            (mergePatch, #"{"l":[{"id":1,"n":2}]}"#, #"PATCH /notes/1 if-match="2" {"l":[{"id":1,"n":2,"x":null}]}"#),
            (mergePatch, #"{"o":{"x":2}}"#, #"PATCH /notes/1 if-match="2" {"o":{"x":2}}"#),
            ("application/json", #"{"o":{"x":2}}"#, #"PATCH /notes/1 if-match="2" {"o":{"x":2,"y":3}}"#),
            ("application/json", #"{"o":{"y":null}}"#, "ask"), ("application/json", #"{"o":{"z":null}}"#, "delivered"),
            (
                "application/json", #"{"o":{"x":null}}"#,
                #"PUT /notes/1 if-match="2" {"id":"1","o":{"y":3},"l":[{"id":1,"n":1,"x":null}],"k":null}"#
            ),
        ])
    func patchesThatCannotSayIt(_ type: String, _ body: String, _ line: String) {
        let base = #"{"id":"1","o":{"x":1,"y":1},"l":[{"id":1,"n":1}],"k":null}"#
        let theirs = #"{"id":"1","o":{"x":1,"y":3},"l":[{"id":1,"n":1,"x":null}],"k":null}"#
        let verdict = ConflictCase(.patch, body, base: base, theirs: theirs, .merging(.fieldMerge, ["/l": "keyed:id"]), type: type)
            .verdict()
        #expect(verdict.line == line)
        if line.hasPrefix("PUT") { #expect(verdict.resend?.request.fields[.contentType] == "application/json") }
    }

    @Test func nullsThatMustBeStoredArePut() {
        let verdict = ConflictCase(
            .patch, #"{"a":2}"#, base: #"{"a":1,"c":{"x":1}}"#, theirs: #"{"a":1,"c":{"x":null}}"#, type: mergePatch
        ).verdict()
        #expect(verdict.line == #"PATCH /notes/1 if-match="2" {"a":2}"#)
        let stored = ConflictCase(
            .patch, #"[{"op":"add","path":"/c","value":null}]"#, base: #"{"a":1}"#, theirs: #"{"a":2}"#, type: jsonPatch
        ).verdict()
        #expect(stored.line == #"PATCH /notes/1 if-match="2" [{"op":"add","path":"/c","value":null}]"#)
        let person = try? ConflictCase(.patch, #"{"a":2}"#, base: #"{"a":1}"#, theirs: #"{"a":3}"#, type: mergePatch)
            .resolved(by: .merged, merged: ["a": 4, "c": .null])
        #expect(person?.line == #"PUT /notes/1 if-match="2" {"a":4,"c":null}"#)
    }

    @Test(
        arguments: [
            (.put, "application/json", #"{"a":2,"version":1}"#, #"PUT /notes/1 {"a":2,"version":7,"b":3}"#),
            (.put, "application/json", #"{"a":2,"b":1}"#, #"PUT /notes/1 {"a":2,"b":3,"version":7}"#),
            (.patch, mergePatch, #"{"a":2,"version":1}"#, #"PATCH /notes/1 {"a":2,"version":7}"#),
            (
                .patch, jsonPatch, #"[{"op":"replace","path":"/a","value":2}]"#,
                #"PATCH /notes/1 [{"op":"test","path":"/version","value":7},{"op":"replace","path":"/a","value":2}]"#
            ),
            (.delete, "", "", "ask"),
        ] as [(HTTPRequest.Method, String, String, String)])
    func versionsInBodies(_ method: HTTPRequest.Method, _ type: String, _ body: String, _ line: String) {
        let verdict = ConflictCase(
            method, body.replacing(#","version":1}"#, with: method == .put ? #","version":1,"b":1}"# : #","version":1}"#),
            base: #"{"a":1,"version":1,"b":1}"#, theirs: #"{"a":1,"version":7,"b":3}"#, .merging(version: "/version"), type: type, etag: nil
        ).verdict()
        #expect(verdict.line == line)
        #expect(verdict.detection == .strong)
    }

    @Test(
        arguments: [
            (.put, "application/json", #"{"data":{"a":2,"b":1},"m":0}"#, #"PUT /notes/1 if-match="2" {"data":{"a":2,"b":3},"m":0}"#),
            (.put, "application/json", #"{"a":2,"b":1}"#, #"PUT /notes/1 if-match="2" {"a":2,"b":3}"#),
            (.patch, mergePatch, #"{"data":{"a":2}}"#, #"PATCH /notes/1 if-match="2" {"data":{"a":2}}"#),
            (
                .patch, jsonPatch, #"[{"op":"replace","path":"/data/a","value":2}]"#,
                #"PATCH /notes/1 if-match="2" [{"op":"replace","path":"/data/a","value":2}]"#
            ),
            (
                .patch, jsonPatch, #"[{"op":"replace","path":"/a","value":2}]"#,
                #"PATCH /notes/1 if-match="2" [{"op":"replace","path":"/a","value":2}]"#
            ),
        ] as [(HTTPRequest.Method, String, String, String)])
    func envelopes(_ method: HTTPRequest.Method, _ type: String, _ body: String, _ line: String) {
        let verdict = ConflictCase(
            method, body, base: #"{"data":{"a":1,"b":1}}"#, theirs: #"{"data":{"a":1,"b":3},"n":1}"#, .merging(envelope: "/data"),
            type: type
        ).verdict()
        #expect(verdict.line == line)
        #expect(written(verdict.theirs) == #"{"a":1,"b":3}"# && written(verdict.base) == #"{"a":1,"b":1}"#)
        #expect(written(verdict.mine) == #"{"a":2,"b":1}"# && written(verdict.result) == #"{"a":2,"b":3}"#)
    }

    /// The client's write applied to theirs: members that a patch does not name stay.
    @Test(
        arguments: [
            (
                .put, "application/json", #"{"a":2}"#, #"PUT /notes/1 if-match="2" {"a":2}"#,
                #"{"a":2,"updatedAt":"2026-01-02T00:00:00.500Z","id":"1"}"#
            ),
            (
                .patch, mergePatch, #"{"b":2}"#, #"PATCH /notes/1 if-match="2" {"b":2}"#,
                #"{"id":"1","a":1,"b":2,"updatedAt":"2026-01-02T00:00:00.500Z"}"#
            ),
            (
                .patch, jsonPatch, #"[{"op":"replace","path":"/b","value":2}]"#,
                #"PATCH /notes/1 if-match="2" [{"op":"replace","path":"/b","value":2}]"#,
                #"{"id":"1","a":1,"b":2,"updatedAt":"2026-01-02T00:00:00.500Z"}"#
            ),
            (.put, "text/plain", "hello", #"PUT /notes/1 if-match="2" hello"#, "hello"),
            (.patch, "text/x-diff", "+a", #"PATCH /notes/1 if-match="2" +a"#, "nothing"),
        ] as [(HTTPRequest.Method, String, String, String, String)])
    func clientWins(_ method: HTTPRequest.Method, _ type: String, _ body: String, _ line: String, _ result: String) {
        let verdict = ConflictCase(method, body, base: Self.base, theirs: Self.theirs, .merging(.clientWins), type: type).verdict()
        #expect(verdict.line == line)
        #expect(written(verdict.result) == result)
    }

    @Test func aPatchIsPutWholeOverADeletion() {
        let verdict = ConflictCase(
            .patch, #"{"a":2}"#, base: Self.base, theirs: nil, .merging(.clientWins), type: mergePatch, status: 404
        ).verdict()
        #expect(verdict.line == #"PUT /notes/1 if-none-match=* {"id":"1","a":2,"b":1}"#)
        let unknown = ConflictCase(.patch, #"{"a":2}"#, base: nil, theirs: nil, .merging(.clientWins), type: mergePatch, status: 404)
        #expect(unknown.verdict().line == "ask")
    }

    /// If the API refuses a PUT to an absent resource, a POST is sent (docs/reference/behaviour.md#conflicts).
    @Test(arguments: [404, 405, 501])
    func creationWithoutPut(_ status: Int) throws {
        var met = ConflictCase(.put, Self.mine, base: Self.base, theirs: nil, .merging(.ask), status: status)
        #expect(met.verdict().line == "ask")
        met.request.fields[.ifNoneMatch] = "*"
        #expect(met.verdict().line == Self.post)
        let creation = try #require(Resend.creation(insteadOf: met.request, body: met.body, resource: met.resource))
        #expect(met.verdict().resend == creation && creation.request.fields[.ifNoneMatch] == nil)
        #expect(Resend.creation(insteadOf: .note(.put), body: met.body, resource: met.resource) == nil)
    }

    @Test func createdTwice() {
        func post(_ body: String, _ strategy: Resource.Conflict) -> ConflictVerdict {
            ConflictCase(.post, body, base: nil, theirs: #"{"id":"7","a":1}"#, .merging(strategy), status: 409)
                .changed { $0.request = .note(.post, id: nil) }.verdict()
        }
        #expect(post(#"{"a":1}"#, .ask).action == .delivered)
        #expect(post("{}", .ask).line == "ask")
        #expect(post(#"{"a":2}"#, .serverWins).line == "yield")
        #expect(post(#"{"a":2}"#, .clientWins).line == #"PUT /notes/7 if-match="2" {"a":2}"#)
        #expect(post(#"{"a":2}"#, .fieldMerge).line == "ask" && post(#"{"a":2}"#, .ask).kind == .createCreate)
        // The same POST would only be refused again.
        #expect(post(#"{"a":2}"#, .keepBoth).line == "ask")
        #expect(post(#"{"id":"7","a":2}"#, .keepBoth).line == #"POST /notes {"a":2}"#)
    }

    /// Two equal steps of a counter count twice, unless the other may be the client's own write with a lost response.
    @Test func equalStepsOfACounterAreTwo() {
        let resource = Resource.merging(.fieldMerge, ["/n": "counter"])
        func step(_ mine: Int, _ theirs: Int, lost: Bool = false, _ resource: Resource) -> String {
            ConflictCase(.put, #"{"n":\#(mine)}"#, base: #"{"n":5}"#, theirs: #"{"n":\#(theirs)}"#, resource)
                .changed { $0.mayHaveApplied = lost }.verdict().line
        }
        #expect(step(6, 6, resource) == #"PUT /notes/1 if-match="2" {"n":7}"#)
        #expect(step(6, 8, resource) == #"PUT /notes/1 if-match="2" {"n":9}"#)
        #expect(step(6, 6, lost: true, resource) == "delivered")
        #expect(step(6, 8, lost: true, resource) == "ask")
        #expect(step(6, 6, .merging(.clientWins, ["/n": "counter"])) == "delivered")
    }

    /// True if dependent writes may be sent without another look at the outcome.
    @Test(
        arguments: [
            (#"{"a":2,"b":1}"#, #"{"a":2,"b":1,"updatedAt":7}"#, .ask, "delivered", true),
            (#"{"a":2}"#, #"{"a":2,"b":3}"#, .clientWins, #"PUT /notes/1 if-match="2" {"a":2}"#, true),
            (#"{"a":1,"b":1}"#, #"{"a":1,"b":3}"#, .fieldMerge, "delivered", false),
            (#"{"a":2,"b":1}"#, #"{"a":1,"b":3}"#, .serverWins, "yield", false),
            (#"{"a":2,"b":1}"#, #"{"a":1,"b":3}"#, .fieldMerge, #"PUT /notes/1 if-match="2" {"a":2,"b":3}"#, false),
            (#"{"a":2,"b":1}"#, #"{"a":1,"b":3}"#, .keepBoth, #"POST /notes {"a":2,"b":1}"#, false),
            (#"{"a":2,"b":1}"#, #"{"a":1,"b":3}"#, .ask, "ask", false),
        ] as [(String, String, Resource.Conflict, String, Bool)])
    func whatBuildsOnIt(_ mine: String, _ theirs: String, _ strategy: Resource.Conflict, _ line: String, _ isAsMeant: Bool) {
        let verdict = ConflictCase(.put, mine, base: #"{"a":1,"b":1}"#, theirs: theirs, .merging(strategy)).verdict()
        #expect(verdict.line == line && verdict.isAsMeant == isAsMeant)
    }

    // MARK: conditions

    @Test(
        arguments: [
            ("W/\"2\"", nil, "PUT /notes/1 ", .weak), (nil, nil, "PUT /notes/1 ", .weak), ("2", nil, "PUT /notes/1 ", .weak),
            ("\"2\"", nil, "PUT /notes/1 if-match=\"2\" ", .strong),
            (nil, "Fri, 02 Jan 2026 00:00:00 GMT", "PUT /notes/1 if-unmodified-since=Fri, 02 Jan 2026 00:00:00 GMT ", .strong),
        ] as [(String?, String?, String, Conflict.Detection)])
    func onlyStrongTagsAreConditions(_ etag: String?, _ modified: String?, _ line: String, _ detection: Conflict.Detection) {
        var met = ConflictCase(
            .put, Self.mine, base: Self.base, theirs: Self.theirs, .merging(.clientWins), etag: etag, modified: modified)
        met.request.fields[.ifMatch] = "\"1\""
        if modified != nil { met.request.fields[.ifUnmodifiedSince] = "Thu, 01 Jan 2026 00:00:00 GMT" }
        let verdict = met.verdict()
        #expect(verdict.line == line + Self.mine && verdict.detection == detection && verdict.resend?.detection == detection)
        met.detection = .weak
        #expect(met.verdict().detection == .weak)
    }

    /// After a 428, or when only the tag has changed, no change is lost: mine is sent with the current tag under every strategy.
    @Test(arguments: Resource.Conflict.allCases)
    func whatDidNotMoveIsSentAgain(_ strategy: Resource.Conflict) {
        let stamped = Self.base.replacing("2026-01-01", with: "2026-01-09")
        for (theirs, etag) in [(Self.base, "\"1\""), (stamped, "\"2\"")] {
            let put = ConflictCase(.put, Self.mine, base: Self.base, theirs: theirs, .merging(strategy), etag: etag, status: 428).verdict()
            #expect(put.line == "PUT /notes/1 if-match=\(etag) \(Self.mine)" && put.resolution == .mine)
            let delete = ConflictCase(.delete, "", base: Self.base, theirs: theirs, .merging(strategy), etag: etag, status: 428).verdict()
            #expect(delete.line == "DELETE /notes/1 if-match=\(etag)")
        }
        let gone = ConflictCase(.delete, "", base: Self.base, theirs: nil, .merging(strategy)).verdict()
        #expect(gone.action == .delivered && gone.resolution == nil)
    }

    @Test func roundsAndRepetitionsEnd() {
        let met = Self.met(.editEdit, .clientWins)
        #expect(met.changed { $0.rounds = ConflictCase.roundLimit - 1 }.verdict().line == Self.put)
        #expect(met.changed { $0.rounds = ConflictCase.roundLimit }.verdict().line == "ask")
        #expect(Self.met(.editEdit, .serverWins).changed { $0.rounds = ConflictCase.roundLimit }.verdict().line == "yield")
        // A 409 for the very request that would be resent.
        let refused = met.changed { $0.request.fields[.ifMatch] = "\"2\"" }
        #expect(refused.verdict().line == "ask")
        #expect(refused.changed { $0.cause = .seen }.verdict().line == Self.put)
    }

    @Test func sidesTooLargeAreWhole() {
        let large = #"{"a":""# + String(repeating: "x", count: ConflictCase.sizeLimit) + #""}"#
        let merged = ConflictCase(.put, large, base: Self.base, theirs: Self.theirs).verdict()
        #expect(merged.line == "ask" && merged.fields.isEmpty)
        #expect(
            ConflictCase(.put, large, base: Self.base, theirs: Self.theirs, .merging(.clientWins)).verdict().line.hasPrefix(
                #"PUT /notes/1 if-match="2" {"#))
        #expect(ConflictCase(.put, large, base: nil, theirs: large).verdict().action == .delivered)
    }

    // MARK: time

    /// Accepted (milliseconds after noon), skew, theirs, and the expected answer to "is mine newer".
    @Test(
        arguments: [
            (1, 0, #""2027-01-15T08:00:00.000Z""#, nil, false), (1000, 0, #""2027-01-15T08:00:00Z""#, nil, true),
            (1, 0, #""2027-01-15T07:59:59.999Z""#, nil, true), (0, 2, #""2027-01-15T08:00:00.001Z""#, nil, true),
            (0, 1, #""2027-01-15T08:00:00.001Z""#, nil, false), (1, 0, "1799999999999", nil, true), (0, 0, "1799999999", nil, true),
            (0, 0, "1800000000", nil, false), (0, 0, #""Fri, 15 Jan 2027 07:59:59 GMT""#, nil, true),
            (0, 0, "null", "Fri, 15 Jan 2027 07:59:59 GMT", true), (999, 0, "null", "Fri, 15 Jan 2027 08:00:00 GMT", false),
            (0, 0, #""soon""#, nil, nil), (0, 0, "-9223372036854775808", nil, true),
        ] as [(Int64, Int64, String, String?, Bool?)])
    func theLaterOne(_ accepted: Int64, _ skew: Int64, _ updatedAt: String, _ modified: String?, _ isMine: Bool?) {
        var met = ConflictCase(
            .put, #"{"a":2}"#, base: #"{"a":1}"#, theirs: #"{"a":3,"updatedAt":\#(updatedAt)}"#, .merging(.lastWriteWins),
            modified: modified)
        (met.acceptedAt, met.clockSkew) = (noon + .milliseconds(accepted), .milliseconds(skew))
        #expect(met.verdict().line == (isMine.map { $0 ? #"PUT /notes/1 if-match="2" {"a":2}"# : "yield" } ?? "ask"))
    }

    /// A time that the upstream has not reached when it is read orders nothing: the other time decides, or a person (docs/outbox.md#times).
    @Test(
        arguments: [
            (#""2099-01-01T00:00:00Z""#, nil, "ask"), (#""2099-01-01T00:00:00Z""#, "Fri, 15 Jan 2027 07:59:00 GMT", "mine"),
            (#""2027-01-15T08:05:00Z""#, nil, "yield"), (#""2027-01-15T08:05:01Z""#, nil, "ask"), ("4070908800", nil, "ask"),
            ("null", "Thu, 01 Jan 2099 00:00:00 GMT", "ask"),
        ] as [(String, String?, String)])
    func impossibleTimesDecideNothing(_ updatedAt: String, _ modified: String?, _ line: String) {
        var met = ConflictCase(
            .put, #"{"a":2}"#, base: #"{"a":1}"#, theirs: #"{"a":3,"updatedAt":\#(updatedAt)}"#, .merging(.lastWriteWins),
            modified: modified)
        (met.acceptedAt, met.readAt) = (noon, noon)
        #expect(met.verdict().line == (line == "mine" ? #"PUT /notes/1 if-match="2" {"a":2}"# : line))
        // By field, mine does not lose to such a time either.
        met.resource = .merging(.fieldMerge, ["/a": "lww"])
        let merged = met.verdict().line
        #expect(line == "ask" ? merged == "ask" : merged != "ask", "\(merged)")
    }

    @Test func impossibleDeletionsDecideNothing() {
        var met = ConflictCase(.put, #"{"a":2}"#, base: #"{"a":1}"#, theirs: nil, .merging(.lastWriteWins), status: 404)
        (met.acceptedAt, met.readAt, met.deletedAt) = (noon, noon, noon + .hours(1))
        #expect(met.verdict().line == "ask")
        met.deletedAt = noon + .seconds(1)
        #expect(met.verdict().line == "yield")
    }
}
