// A user's decisions, their undoing, the precheck before sending, and the table (docs/reference/behaviour.md#conflicts).
import HTTPTypes
import RockpoolCore
import Testing

private let base = #"{"id":"1","a":1,"b":1}"#
private let theirs = #"{"id":"1","a":3,"b":1,"updatedAt":9}"#

private func put(_ body: String = #"{"id":"1","a":2,"b":1}"#, theirs: String? = theirs, etag: String = "\"2\"") -> ConflictCase {
    ConflictCase(.put, body, base: base, theirs: theirs, .merging(.ask), etag: etag)
}

private func refusal(_ work: () throws -> some Any) -> Int? {
    do {
        _ = try work()
        return nil
    } catch { return (error as? Refusal)?.status }
}

@Suite struct ConflictPersonTests {
    @Test func decisions() throws {
        #expect(try put().resolved(by: .mine).line == #"PUT /notes/1 if-match="2" {"id":"1","a":2,"b":1}"#)
        #expect(try put().resolved(by: .theirs).line == "yield")
        #expect(try put().resolved(by: .both).line == #"POST /notes {"a":2,"b":1}"#)
        #expect(try put().resolved(by: .merged, merged: ["a": 5, "id": "9"]).line == #"PUT /notes/1 if-match="2" {"a":5,"id":"1"}"#)
        #expect(try put(theirs: nil).resolved(by: .mine).line == #"PUT /notes/1 if-none-match=* {"id":"1","a":2,"b":1}"#)
        #expect(try put(theirs: nil).resolved(by: .merged, merged: ["a": 5]).line == #"PUT /notes/1 if-none-match=* {"a":5}"#)
        #expect(try put(theirs: nil).resolved(by: .theirs).line == "yield")
        // Meanwhile the upstream's state has become equal to mine.
        #expect(try put(theirs: #"{"id":"1","a":2,"b":1}"#).resolved(by: .mine).line == "delivered")
        for resolution in Conflict.Resolution.allCases {
            let verdict = try put().resolved(by: resolution, merged: ["a": 5])
            #expect(verdict.resolution == resolution && verdict.decidedBy == .person)
        }
        let delete = ConflictCase(.delete, "", base: base, theirs: theirs, .merging(.ask))
        #expect(try delete.resolved(by: .mine).line == #"DELETE /notes/1 if-match="2""#)
        #expect(try delete.resolved(by: .merged, merged: ["a": 5]).line.hasPrefix(#"PUT /notes/1 if-match="2" {"a":5,"id":"1""#))
        #expect(refusal { try delete.resolved(by: .both) } == 409)
    }

    @Test func whatCannotBeDecided() {
        #expect(refusal { try put().resolved(by: .merged) } == 422)
        #expect(refusal { try put().resolved(by: .merged, merged: [1]) } == 422)
        let page = put().changed { $0.theirs = .present(Conflict.Side("<html>", type: "text/html"), ResponseHead(status: 200)) }
        #expect(refusal { try page.resolved(by: .merged, merged: ["a": 1]) } == 422)
        let blind = ConflictCase(.patch, #"{"a":1}"#, base: nil, theirs: nil, .merging(.ask), type: "application/merge-patch+json")
        #expect(refusal { try blind.resolved(by: .mine) } == 409 && refusal { try blind.resolved(by: .both) } == 409)
        // A person sees, and the record keeps, the members that the patch writes.
        for verdict in [blind.verdict(), try? blind.resolved(by: .theirs)] {
            #expect(verdict?.fields.map(\.pointer.text) == ["/a"] && verdict?.fields.first?.mine == 1)
        }
    }

    /// A merge with the effect of an action of the same client is no conflict, unless a value is lost.
    @Test func anOwnActionIsNoConflict() {
        for strategy in Resource.Conflict.allCases {
            var met = ConflictCase(
                .patch, #"{"b":2}"#, base: base, theirs: theirs, .merging(strategy), type: "application/merge-patch+json", etag: "\"2\"")
            met.mayMeetOwnAction = true
            #expect(met.verdict().resolution == .merged && !met.verdict().isListed, "\(strategy)")
            met.mayMeetOwnAction = false
            #expect(met.verdict().isListed)
            var disputed = put()
            disputed.mayMeetOwnAction = true
            #expect(disputed.verdict().isListed)
        }
    }

    /// A decision made in view of an older state does not revert later changes.
    @Test func mergedInViewOfAnOlderState() throws {
        let seen = Conflict.Side(theirs, etag: "\"2\"")
        let newer = put(theirs: #"{"id":"1","a":3,"b":8}"#, etag: "\"3\"")
        #expect(
            try newer.resolved(by: .merged, merged: ["a": 5, "b": 1], seen: seen).line
                == #"PUT /notes/1 if-match="3" {"a":5,"b":8,"id":"1"}"#
                || newer.resolved(by: .merged, merged: ["a": 5, "b": 1], seen: seen).line
                    == #"PUT /notes/1 if-match="3" {"id":"1","a":5,"b":8}"#
        )
        #expect(refusal { try newer.resolved(by: .merged, merged: ["a": 5, "b": 2], seen: seen) } == 409)
    }

    // MARK: undo

    private func undone(_ verdict: ConflictVerdict, over today: String?, resource: Resource = .merging()) throws -> String {
        let state = today.map { ConflictCase.Theirs.present(Conflict.Side($0, etag: "\"9\""), ResponseHead(status: 200)) } ?? .gone
        return try verdict.recorded().undone(resource: resource, over: state).line
    }

    @Test func theLosingSideComesBack() throws {
        let lost = try put().resolved(by: .theirs)
        #expect(try undone(lost, over: theirs) == #"PUT /notes/1 if-match="9" {"id":"1","a":2,"b":1,"updatedAt":9}"#)
        // Later changes from elsewhere stay.
        #expect(try undone(lost, over: #"{"id":"1","a":3,"b":7}"#) == #"PUT /notes/1 if-match="9" {"id":"1","a":2,"b":7}"#)
        #expect(try undone(lost, over: nil) == #"PUT /notes/1 if-none-match=* {"id":"1","a":2,"b":1}"#)
        #expect(refusal { try undone(lost, over: #"{"id":"1","a":2,"b":1}"#) } == 409)
        let won = try put().resolved(by: .mine)
        #expect(try undone(won, over: #"{"id":"1","a":2,"b":1}"#) == #"PUT /notes/1 if-match="9" {"id":"1","a":3,"b":1}"#)
        #expect(refusal { try undone(try put().resolved(by: .both), over: theirs) } == 409)
        #expect(refusal { try put().verdict().recorded(isOpen: true).undone(resource: .merging(), over: .gone) } == 409)
        // The body form of an enveloped resource.
        let enveloped = Resource.merging(.ask, envelope: "/data")
        #expect(
            try undone(lost, over: #"{"data":{"id":"1","a":3,"b":1}}"#, resource: enveloped)
                == #"PUT /notes/1 if-match="9" {"data":{"id":"1","a":2,"b":1}}"#)
    }

    /// After a merge by hand that equals neither side, each side can be restored.
    @Test func bothSidesOfAMergeByHandCanBeRestored() throws {
        let merged = try put().resolved(by: .merged, merged: ["id": "1", "a": 9, "b": 1]).recorded()
        let today = ConflictCase.Theirs.present(Conflict.Side(#"{"id":"1","a":9,"b":1}"#, etag: "\"9\""), ResponseHead(status: 200))
        for (side, value) in [(Conflict.Resolution.mine, "2"), (.theirs, "3")] {
            let line = try merged.undone(resource: .merging(), over: today, side: side).line
            #expect(line.contains(#""a":\#(value)"#) && line.hasPrefix(#"PUT /notes/1 if-match="9""#))
        }
        #expect(refusal { try merged.undone(resource: .merging(), over: today) } == 409)
        let lost = try put().resolved(by: .theirs).recorded()
        #expect(refusal { try lost.undone(resource: .merging(), over: today, side: .theirs) } == 409)
    }

    @Test func deletionsComeBackToo() throws {
        let kept = try ConflictCase(.delete, "", base: base, theirs: theirs, .merging(.ask)).resolved(by: .theirs)
        #expect(try undone(kept, over: theirs) == #"DELETE /notes/1 if-match="9""#)
        #expect(refusal { try undone(kept, over: nil) } == 409)
        let deleted = try ConflictCase(.delete, "", base: base, theirs: theirs, .merging(.ask)).resolved(by: .mine)
        #expect(try undone(deleted, over: nil) == #"PUT /notes/1 if-none-match=* {"id":"1","a":3,"b":1}"#)
        let restored = try put(theirs: nil).resolved(by: .mine)
        #expect(try undone(restored, over: base) == #"DELETE /notes/1 if-match="9""#)
    }

    @Test func whatAMergeDroppedComesBack() throws {
        let met = ConflictCase(
            .put, #"{"id":"1","a":2,"b":2,"c":2,"l":[{"k":2}]}"#, base: #"{"id":"1","a":1,"b":1,"c":1,"l":[{"k":1},{"k":2}]}"#,
            theirs: #"{"id":"1","a":3,"b":1,"l":[{"k":1,"n":1},{"k":2}]}"#,
            .merging(.fieldMerge, ["": "server", "/a": "client", "/l": "keyed:k", "/l/*": "client"]))
        let verdict = met.verdict()
        #expect(written(verdict.result) == #"{"id":"1","a":2,"b":2,"l":[{"k":2}]}"#)
        #expect(
            try undone(verdict, over: written(verdict.result))
                == #"PUT /notes/1 if-match="9" {"id":"1","a":3,"b":2,"l":[{"k":2},{"k":1,"n":1}],"c":2}"#)
        let disjoint = ConflictCase(.put, #"{"id":"1","a":1,"b":2}"#, base: base, theirs: theirs).verdict()
        #expect(disjoint.resolution == .merged && refusal { try undone(disjoint, over: theirs) } == 409)
    }

    /// Elements are removed and changed in one merge: the positions of the changed ones hold while the removed ones are restored.
    @Test func whatAMergeDroppedOfAListComesBack() throws {
        let met = ConflictCase(
            .put, #"{"l":[{"k":1,"n":2},{"k":2,"n":2}]}"#, base: #"{"l":[{"k":1,"n":1},{"k":2,"n":1}]}"#, theirs: #"{"l":[{"k":2,"n":3}]}"#,
            .merging(.fieldMerge, ["/l": "keyed:k", "/l/*": "client"]))
        let verdict = met.verdict()
        #expect(written(verdict.result) == #"{"l":[{"k":2,"n":2},{"k":1,"n":2}]}"#)
        #expect(try undone(verdict, over: written(verdict.result)) == #"PUT /notes/1 if-match="9" {"l":[{"k":2,"n":3}]}"#)
        // The first element is removed, the second changed.
        let first = ConflictCase(
            .put, #"{"l":[{"k":2,"n":1},{"k":1,"n":2},{"k":3,"n":2}]}"#, base: #"{"l":[{"k":1,"n":1},{"k":2,"n":1},{"k":3,"n":1}]}"#,
            theirs: #"{"l":[{"k":2,"n":1},{"k":3,"n":3}]}"#, .merging(.fieldMerge, ["/l": "keyed:k", "/l/*": "client"])
        ).verdict()
        #expect(written(first.result) == #"{"l":[{"k":2,"n":1},{"k":1,"n":2},{"k":3,"n":2}]}"#)
        #expect(try undone(first, over: written(first.result)).hasSuffix(#"{"l":[{"k":2,"n":1},{"k":3,"n":3}]}"#))
    }

    // MARK: the precheck before sending

    @Test(
        arguments: [
            (.put, "etag", "\"1\"", "{}", false), (.put, "etag", "W/\"1\"", "{}", true), (.put, "etag", nil, "{}", true),
            (.delete, "etag", nil, "", true), (.post, "etag", nil, "{}", false), (.put, "/v", nil, #"{"v":1}"#, false),
            (.put, "/v", "\"1\"", "{}", true), (.patch, "/v", nil, #"{"a":1}"#, true), (.delete, "/v", nil, "", true),
        ] as [(HTTPRequest.Method, String, String?, String, Bool)])
    func looks(_ method: HTTPRequest.Method, _ version: String, _ etag: String?, _ body: String, _ isNeeded: Bool) {
        let resource = Resource.merging(version: version)
        var request = RequestHead.note(method)
        #expect(
            ConflictPrecheck.isNeeded(request, body: Array(body.utf8), base: Conflict.Side("{}", etag: etag), resource: resource)
                == isNeeded)
        #expect(!ConflictPrecheck.isNeeded(request, body: Array(body.utf8), base: nil, resource: resource))
        request.fields[.ifMatch] = "\"1\""
        #expect(!ConflictPrecheck.isNeeded(request, body: Array(body.utf8), base: Conflict.Side("{}", etag: etag), resource: resource))
    }

    @Test(
        arguments: [
            (#"{"a":1}"#, "\"1\"", #"{"a":2}"#, "\"1\"", false), (#"{"a":1}"#, "\"1\"", #"{"a":1.0}"#, "\"2\"", false),
            (#"{"a":1}"#, "W/\"1\"", #"{"a":2}"#, "W/\"1\"", true),
            (#"{"a":1,"id":1,"updatedAt":1}"#, nil, #"{"updatedAt":2,"a":1}"#, nil, false),
            (#"{"a":1,"v":1}"#, nil, #"{"a":2,"v":1}"#, nil, false), (#"{"a":1,"v":1}"#, nil, #"{"a":1,"v":2}"#, nil, false),
            (#"{"a":1,"v":1}"#, nil, #"{"a":2,"v":2}"#, nil, true), ("x", nil, "x", nil, false), ("x", nil, "y", nil, true),
        ] as [(String, String?, String, String?, Bool)])
    func moves(_ base: String, _ baseTag: String?, _ theirs: String, _ theirTag: String?, _ hasMoved: Bool) {
        let (base, theirs) = (Conflict.Side(base, etag: baseTag), Conflict.Side(theirs, etag: theirTag))
        #expect(ConflictPrecheck.hasMoved(from: base, to: theirs, resource: .merging(version: "/v")) == hasMoved)
    }

    // MARK: the table

    @Test func theTableNamesEverything() {
        let table = Resource.Conflict.table()
        for strategy in Resource.Conflict.allCases { #expect(table.contains("| `\(strategy.rawValue)` |")) }
        for word in FieldStrategy.words { #expect(table.contains("| `\(word)` |")) }
        #expect(table.hasPrefix("| strategy | edit-edit | edit-delete | delete-edit | create-create |\n| --- | --- | --- | --- | --- |\n"))
        let widths = table.split(separator: "\n", omittingEmptySubsequences: false).filter { !$0.isEmpty }.map {
            $0.split(separator: "|").count
        }
        #expect(Set(widths.prefix(8)) == [5])
    }
}
