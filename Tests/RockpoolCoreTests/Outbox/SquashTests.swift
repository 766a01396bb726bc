// Neighbours that are squashed; the resulting write has the effect of both (docs/outbox.md#squash).
import HTTPTypes
import RockpoolCore
import Testing

private func json(_ text: String) throws -> JSONValue { try JSONValue.parse(Array(text.utf8)) }
private func text(_ value: JSONValue) -> String { String(decoding: value.serialized(), as: UTF8.self) }

private func write(
    _ sequence: Int64, _ method: HTTPRequest.Method, _ body: String = "", type: String? = "application/json", isCreate: Bool = false
) -> SquashCandidate {
    SquashCandidate(
        sequence: sequence, lane: "notes /notes/1", previous: sequence - 1, entity: "/notes/1", isCreate: isCreate, method: method,
        target: isCreate ? "/notes" : "/notes/1", contentType: body.isEmpty ? nil : type, body: Array(body.utf8))
}

private func put(_ body: String) -> SquashCandidate { write(1, .put, body) }
private func merge(_ sequence: Int64, _ body: String) -> SquashCandidate {
    write(sequence, .patch, body, type: "application/merge-patch+json")
}
private func replaced(_ method: HTTPRequest.Method, _ body: String) -> Squash.Decision { .replace(body: Array(body.utf8), method: method) }

@Suite struct SquashTests {
    typealias Change = @Sendable (inout SquashCandidate) -> Void

    /// The difference between two PUTs, and the reason for keeping both.
    struct Row: Sendable {
        let (reason, first, second): (Squash.Reason?, Change, Change)

        init(_ reason: Squash.Reason?, _ first: @escaping Change, _ second: @escaping Change) {
            (self.reason, self.first, self.second) = (reason, first, second)
        }
    }

    @Test(arguments: [
        (put(#"{"a":1}"#), write(2, .put, #"{ "a": 2, "b": 1.0 }"#), replaced(.put, #"{ "a": 2, "b": 1.0 }"#)),
        // The upstream may keep what a PUT leaves out.
        (put(#"{"a":1}"#), write(2, .put, #"{"b":1}"#), .keepBoth(.composition)),
        (put(#"{"note":{"a":1}}"#), write(2, .put, #"{"note":{"b":1}}"#), .keepBoth(.composition)),
        (merge(1, #"{"a":1,"b":{"x":1}}"#), merge(2, #"{"b":{"y":null},"a":2}"#), replaced(.patch, #"{"a":2,"b":{"x":1,"y":null}}"#)),
        (merge(1, #"{"a":{"x":1}}"#), merge(2, #"{"a":null}"#), replaced(.patch, #"{"a":null}"#)),
        (merge(1, #"{"a":5}"#), merge(2, #"{"a":{"x":1}}"#), .keepBoth(.composition)),
        (merge(1, #"{"a":null}"#), merge(2, #"{"a":{}}"#), .keepBoth(.composition)),
        (merge(1, #"{"a":{"b":[1]}}"#), merge(2, #"{"a":{"b":{"c":1}}}"#), .keepBoth(.composition)),
        (merge(1, "5"), merge(2, "{}"), .keepBoth(.composition)), (merge(1, #"{"a":1}"#), merge(2, "[2]"), replaced(.patch, "[2]")),
        // `application/json`: replacing and merging each member must have the same effect.
        (
            write(1, .patch, #"{"a":{"x":1},"b":1}"#), write(2, .patch, #"{"b":null,"c":{"y":1}}"#),
            replaced(.patch, #"{"a":{"x":1},"b":null,"c":{"y":1}}"#)
        ),
        (write(1, .patch, #"{"a":{"x":1}}"#), write(2, .patch, #"{"a":{"y":1}}"#), .keepBoth(.composition)),
        (put(#"{"b":{"x":1},"c":0}"#), merge(2, #"{"b":{"x":2},"d":3}"#), replaced(.put, #"{"b":{"x":2},"c":0,"d":3}"#)),
        (put(#"{"a":1,"b":1}"#), merge(2, #"{"a":null}"#), .keepBoth(.composition)),
        (put(#"{"a":5}"#), merge(2, #"{"a":{"x":null,"y":1}}"#), replaced(.put, #"{"a":{"y":1}}"#)),
        // Members that the PUT omits may still exist upstream.
        (put(#"{"a":1}"#), merge(2, #"{"b":null}"#), .keepBoth(.composition)),
        (put(#"{"a":{}}"#), merge(2, #"{"a":{"b":{"c":1}}}"#), .keepBoth(.composition)),
        (put(#"{"a":1}"#), write(2, .patch, #"{"a":2,"n":1.50}"#), replaced(.put, #"{"a":2,"n":1.50}"#)),
        (put(#"{"a":1}"#), write(2, .patch, #"{"a":null}"#), .keepBoth(.composition)),
        (put("[1]"), merge(2, #"{"a":1}"#), .keepBoth(.composition)),
        (put(#"{"a":1}"#), merge(2, "oops"), .keepBoth(.content)),
        (put("{}"), write(2, .patch, "[]", type: "application/json-patch+json"), .keepBoth(.pair)),
        (write(1, .patch, "{}"), merge(2, "{}"), .keepBoth(.pair)), (merge(1, "{}"), write(2, .put, "{}"), .keepBoth(.pair)),
        (put("{}"), write(2, .delete), replaced(.delete, "")), (merge(1, "{}"), write(2, .delete), replaced(.delete, "")),
        (write(1, .delete), write(2, .put, "{}"), .keepBoth(.pair)), (write(1, .delete), write(2, .delete), .keepBoth(.pair)),
        (write(1, .post, "{}", isCreate: true), write(2, .delete), .cancelBoth),
        (write(1, .post, "{}", isCreate: true), merge(2, "{}"), .foldIntoCreate(body: Array("{}".utf8))),
        (write(1, .post, "{}", isCreate: true), write(2, .put, "{}"), .foldIntoCreate(body: Array("{}".utf8))),
        (
            write(1, .post, #"{"a":1}"#, isCreate: true), merge(2, #"{"b":2}"#), .foldIntoCreate(body: Array(#"{"a":1,"b":2}"#.utf8))
        ),
        (write(1, .post, #"{"a":1}"#, isCreate: true), merge(2, #"{"a":null}"#), .keepBoth(.composition)),
        (write(1, .post, #"{"a":1}"#, isCreate: true), write(2, .put, #"{"b":2}"#), .keepBoth(.composition)),
        (write(1, .post, "text", isCreate: true), merge(2, "{}"), .keepBoth(.content)),
        (write(1, .post, "{}", isCreate: true), write(2, .post, "{}"), .keepBoth(.pair)),
        (write(1, .post, "{}"), write(2, .delete), .keepBoth(.pair)),
    ])
    func pairs(_ earlier: SquashCandidate, _ later: SquashCandidate, _ decision: Squash.Decision) {
        #expect(Squash.decide(earlier: earlier, later: later) == decision)
    }

    @Test(
        arguments: [
            Row(.sent, { $0.isUnsent = false }, { _ in }), Row(.sent, { _ in }, { $0.isUnsent = false }),
            Row(.lane, { _ in }, { $0.lane = "x" }),
            Row(.lane, { $0.entity = nil }, { $0.entity = nil }), Row(.lane, { _ in }, { $0.entity = "/notes/2" }),
            Row(.notAdjacent, { _ in }, { $0.previous = 0 }), Row(.dependants, { $0.hasDependants = true }, { _ in }),
            Row(.forbidden, { $0.permitsMerging = false }, { _ in }), Row(.forbidden, { _ in }, { $0.permitsMerging = false }),
            Row(.principal, { $0.principal = "a" }, { $0.principal = "b" }), Row(.principal, { _ in }, { $0.principal = "b" }),
            Row(.terms, { $0.priority = 1 }, { _ in }), Row(.terms, { _ in }, { $0.expiresAt = noon }),
            Row(.terms, { _ in }, { $0.group = "g" }),
            Row(.terms, { $0.needs = [0] }, { _ in }), Row(.terms, { _ in }, { $0.needs = [0, 1] }),
            Row(.fields, { $0.fields[.ifMatch] = "\"1\"" }, { $0.fields[.ifMatch] = "\"2\"" }),
            Row(.fields, { _ in }, { $0.fields[.ifMatch] = "\"2\"" }),
            Row(.fields, { $0.fields[.ifNoneMatch] = "*" }, { $0.fields[.ifNoneMatch] = "*" }),
            Row(.fields, { _ in }, { $0.target = "/notes/1?notify=1" }), Row(.fields, { _ in }, { $0.fields[.contentLanguage] = "x" }),
            Row(.pair, { _ in }, { $0.action = "publish" }), Row(.pair, { $0.action = "publish" }, { _ in }),
            Row(nil, { $0.fields[.userAgent] = "a" }, { $0.fields[.userAgent] = "b" }), Row(nil, { _ in }, { $0.needs = [1] }),
            Row(nil, { $0.fields[.ifMatch] = "\"1\"" }, { $0.fields[.ifMatch] = "\"1\"" }),
            Row(nil, { ($0.principal, $0.priority, $0.needs) = ("a", 5, [0]) }, { ($0.principal, $0.priority, $0.needs) = ("a", 5, [0]) }),
        ] as [Row])
    func hindrances(_ row: Row) {
        var (earlier, later) = (put("{}"), write(2, .put, #"{"a":1}"#))
        row.first(&earlier)
        row.second(&later)
        let expected = row.reason.map(Squash.Decision.keepBoth) ?? replaced(.put, #"{"a":1}"#)
        #expect(Squash.decide(earlier: earlier, later: later) == expected)
    }

    @Test func createAndDeleteStayWhenTheCreateMayHaveBeenSent() {
        var create = write(1, .post, "{}", isCreate: true)
        create.isUnsent = false
        #expect(Squash.decide(earlier: create, later: write(2, .delete)) == .keepBoth(.sent))
        var conditional = write(2, .delete)
        conditional.fields[.ifMatch] = "\"loc-1\""
        #expect(Squash.decide(earlier: write(1, .post, "{}", isCreate: true), later: conditional) == .keepBoth(.pair))
    }
}

/// Returns the item after a write, at an upstream that keeps `version`, or every member, when a PUT omits it.
private func applied(
    _ method: HTTPRequest.Method, _ body: JSONValue, to item: JSONValue?, readsDeep: Bool, keepsAll: Bool
) -> JSONValue? {
    switch method {
    case .delete: return nil
    case .put:
        if keepsAll, let sent = body.object, let known = item?.object {
            return .object(sent.reduce(into: known) { $0[$1.name] = $1.value })
        }
        var object = body
        if object.object != nil, let kept = item?["version"], object["version"] == nil { object["version"] = kept }
        return object
    default:
        guard let item else { return nil }
        if readsDeep { return item.merging(body) }
        return JSONValue.object((body.object ?? JSONObject()).reduce(into: item.object ?? JSONObject()) { $0[$1.name] = $1.value })
    }
}

@Suite struct SquashPropertyTests {
    /// The pair and the squashed write have the same effect on any item, in both interpretations of `application/json`, and of PUT.
    @Test(arguments: 0..<20) func oneDoesWhatTwoDid(_ seed: Int) throws {
        var random = SeededGenerator(seed: seed)
        var squashed = 0
        for round in 0..<300 {
            let type = random.one(of: ["application/json", "application/merge-patch+json"])
            let methods = random.one(of: [
                (HTTPRequest.Method.put, HTTPRequest.Method.patch), (.patch, .patch), (.put, .put), (.patch, .delete),
            ])
            let bodies = (random.object(nulls: methods.0 == .patch), random.object(nulls: methods.1 == .patch))
            let earlier = write(1, methods.0, text(bodies.0), type: methods.0 == .put ? "application/json" : type)
            let later = write(2, methods.1, methods.1 == .delete ? "" : text(bodies.1), type: methods.1 == .put ? "application/json" : type)
            guard case .replace(let body, let method) = Squash.decide(earlier: earlier, later: later) else { continue }
            squashed += 1
            var item = random.object(nulls: false)
            item["version"] = 7
            let readings = [(true, false), (true, true)] + (type == "application/json" ? [(false, false), (false, true)] : [])
            for (readsDeep, keepsAll) in readings {
                let first = applied(methods.0, bodies.0, to: item, readsDeep: readsDeep, keepsAll: keepsAll)
                let two = applied(methods.1, bodies.1, to: first, readsDeep: readsDeep, keepsAll: keepsAll)
                let whole = body.isEmpty ? .null : try JSONValue.parse(body)
                let one = applied(method, whole, to: item, readsDeep: readsDeep, keepsAll: keepsAll)
                #expect(one == two, "seed \(seed), round \(round): \(methods) \(text(bodies.0)) then \(text(bodies.1)) on \(text(item))")
            }
        }
        #expect(squashed > 60)
    }

    /// Checks that the test can fail: without the rule, patches that do not compose would give another result.
    @Test func naiveMergingFails() throws {
        let (item, first, second) = (try json(#"{"a":{"y":2}}"#), try json(#"{"a":5}"#), try json(#"{"a":{"x":1}}"#))
        #expect(item.merging(first).merging(second) != item.merging(first.merging(second)))
    }
}
