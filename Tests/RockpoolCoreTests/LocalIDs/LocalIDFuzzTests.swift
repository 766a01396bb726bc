// Random requests from texts and ids in every place and escape: after substitution each byte is the expected one, and no local id is left
// in any decoding (docs/outbox.md#properties, P5).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct LocalIDFuzzTests {
    @Test(arguments: 0..<40) func everyByteIsTheExpectedOne(_ seed: UInt64) throws {
        var draft = RequestDraft(random: SeededRandom(state: seed &* 7919))
        for _ in 0..<12 {
            let (sent, body, expected, expectedBody) = draft.request()
            let result = try LocalIDSubstitution.apply(head: sent, body: body, map: draft.map)
            #expect(result.head.target == expected.target)
            #expect(result.head.fields == expected.fields)
            #expect(String(decoding: result.body, as: UTF8.self) == String(decoding: expectedBody, as: UTF8.self))
            let references = LocalIDScan.references(head: sent, body: body)
            #expect(Set(references.map(\.id)) == draft.used)
            #expect(LocalIDScan.mayOccur(head: sent, body: body) == !references.isEmpty)
            for text in [result.head.target, String(decoding: result.body, as: UTF8.self)] + result.head.fields.map(\.value) {
                #expect(!decodedAgainAndAgain(text).contains { $0.contains("loc_") || $0.contains(/8\d{15}/) }, "\(text)")
            }
            for id in draft.used {
                var partial = draft.map
                partial[id] = nil
                #expect(throws: UnmappedLocalIDs(ids: [id])) { try LocalIDSubstitution.apply(head: sent, body: body, map: partial) }
            }
        }
    }

    @Test(arguments: 0..<20) func hostileBytesNeverTrap(_ seed: UInt64) {
        var draft = RequestDraft(random: SeededRandom(state: seed))
        let noise = Array(#"%5CF\u0025{}[]":,&=?/loc_7-"#.utf8)
        for _ in 0..<100 {
            var (head, body, _, _) = draft.request()
            for _ in 0..<8 {
                if let index = body.indices.randomElement(using: &draft.random), let byte = noise.randomElement(using: &draft.random) {
                    body[index] = byte
                }
            }
            head.target = String(head.target.prefix(.random(in: 1...head.target.count, using: &draft.random)))
            let references = LocalIDScan.references(head: head, body: body)
            #expect(references.isEmpty == !LocalIDScan.mayOccur(head: head, body: body))
            guard let result = try? LocalIDSubstitution.apply(head: head, body: body, map: draft.map) else { continue }
            #expect(!LocalIDScan.mayOccur(head: result.head, body: result.body))
            let isJSON = (try? JSONValue.parse(body)) != nil
            #expect(!isJSON || isJSONButForNames(result.body))
        }
    }

    /// Substitution may make two names equal, by the same server id; only in that case may the body cease to be valid JSON.
    private func isJSONButForNames(_ bytes: [UInt8]) -> Bool {
        do throws(JSONError) {
            _ = try JSONValue.parse(bytes)
            return true
        } catch { return error.problem == .duplicateName }
    }

    /// Returns the text, and the text after one, two and three rounds of decoding percent and JSON escapes.
    private func decodedAgainAndAgain(_ text: String) -> [String] {
        var texts = [text]
        for _ in 0..<3 { texts.append(decoded(decoded(texts[texts.count - 1], "\\u00"), "%")) }
        return texts
    }

    private func decoded(_ text: String, _ mark: String) -> String {
        var parts = text.split(separator: mark, omittingEmptySubsequences: false)
        for index in parts.indices.dropFirst() {
            guard let byte = UInt8(parts[index].prefix(2), radix: 16), byte < 0x80 else { continue }
            parts[index] = String(UnicodeScalar(byte)) + parts[index].dropFirst(2)
        }
        return parts.joined()
    }
}

/// Builds a request together with the expected result.
struct RequestDraft {
    var random: SeededRandom
    private(set) var map: [LocalID: ServerID] = [:]
    private(set) var used: Set<LocalID> = []

    init(random: SeededRandom) { self.random = random }

    typealias Pair = (sent: String, expected: String)

    mutating func request() -> (RequestHead, [UInt8], RequestHead, [UInt8]) {
        (map, used) = ([:], [])
        let path = inURI(count: 3, separator: "/")
        let query = inURI(count: 3, separator: "&")
        let field = inField()
        var heads = (post("/" + path.sent + "?" + query.sent), post("/" + path.expected + "?" + query.expected))
        heads.0.fields[.referer] = field.sent
        heads.1.fields[.referer] = field.expected
        let body: Pair
        switch Int.random(in: 0..<3, using: &random) {
        case 0: body = json(depth: 4)
        case 1:
            body = inURI(count: 4, separator: "&")
            heads.0.fields[.contentType] = "application/x-www-form-urlencoded"
            heads.1.fields[.contentType] = "application/x-www-form-urlencoded"
        default:
            let part = inField()
            body = ("--b\r\n\r\n\(part.sent)\r\n--b--", "--b\r\n\r\n\(part.expected)\r\n--b--")
        }
        return (heads.0, Array(body.sent.utf8), heads.1, Array(body.expected.utf8))
    }

    private mutating func pick(_ texts: [String]) -> String { texts.randomElement(using: &random) ?? "" }

    private mutating func id(_ names: [String], mayBeNumber: Bool = true) -> (LocalID, ServerID) {
        let isNumber = mayBeNumber && .random(using: &random)
        let id =
            isNumber
            ? LocalID.makeNumber(random: random.next()) : LocalID.make(now: noon, random: (random.next(), random.next()))
        let server = ServerID(text: pick(names), isNumber: .random(using: &random))
        map[id] = server
        used.insert(id)
        return (id, server)
    }

    /// Returns the id with some of its characters escaped.
    private mutating func escaped(_ id: LocalID, _ escape: (UInt8) -> String) -> String {
        id.text.utf8.map { Int.random(in: 0..<6, using: &random) == 0 ? escape($0) : String(UnicodeScalar($0)) }.joined()
    }

    private static func hex(_ byte: UInt8) -> String { (byte < 16 ? "0" : "") + String(byte, radix: 16) }
    private static func percent(_ text: String) -> String {
        text.utf8.map { byte in
            let character = String(UnicodeScalar(byte))
            return character.contains(/^[A-Za-z0-9._~-]$/) ? character : "%" + hex(byte).uppercased()
        }.joined()
    }

    private mutating func inURI(count: Int, separator: String) -> Pair {
        var pair: Pair = ("", "")
        for _ in 0..<count {
            let (before, after) = (pick(["", "a-", "x=", "%2F", "%3d", "v%5b,"]), pick(["", "-z", ":run", "%2Fy", ",1", "%22"]))
            if Bool.random(using: &random) {
                // Behind a sign a number is another one.
                let (id, server) = id(["17", "a b", "x/y", "q\"\\", "\u{e9}&=+", "..x"], mayBeNumber: before != "a-")
                pair.sent += before + escaped(id) { "%" + Self.hex($0) } + after
                pair.expected += before + Self.percent(server.text) + after
            } else {
                pair.sent += before + after
                pair.expected += before + after
            }
            pair.sent += separator
            pair.expected += separator
        }
        return pair
    }

    private mutating func inField() -> Pair {
        let (id, server) = id(["17", "b-18", "x.y_z", "k:v/w"])
        let (before, after) = (pick(["", "\"", "a ", "</n/", "x="]), pick(["", "\"", " z", ">; a=b"]))
        return (before + id.text + after, before + server.text + after)
    }

    private mutating func json(depth: Int) -> Pair {
        let space = pick(["", " ", "\n\t"])
        switch Int.random(in: 0..<(depth > 0 ? 6 : 4), using: &random) {
        case 0:
            let text = pick(["1.50", "-0", "1E+2", "12345678901234567890", "null", "true", #""\u00e9\/\\""#, #""x\"y""#, "{}", "[ ]"])
            return (space + text, space + text)
        case 1, 2:
            let (id, server) = id(["17", "x", "a\"b", "c\\d", "e\nf"])
            let isBare = id.isNumber && .random(using: &random)
            let sent = isBare ? id.text : "\"" + escaped(id) { "\\u00" + Self.hex($0) } + "\""
            let isWritten = server.isNumber && server.text == "17"
            return (space + sent, space + (isWritten ? "17" : "\"\(Self.quoted(server.text))\""))
        case 3:
            let (id, server) = id(["17", "x", "a\"b", "c\\d"])
            let (before, after) = (pick([#"\n"#, #"\u0009"#, "/n/", #"\\"#, #"\""#, "\u{e9}"]), pick(["/", #"\n"#, #"\u0041"#, " "]))
            let sent = escaped(id) { "\\u00" + Self.hex($0) }
            return ("\"\(before)\(sent)\(after)\"", "\"\(before)\(Self.quoted(server.text))\(after)\"")
        case 4:
            let (one, two) = (json(depth: depth - 1), json(depth: depth - 1))
            return ("[\(one.sent)\(space),\(two.sent)]", "[\(one.expected)\(space),\(two.expected)]")
        default:
            let (one, two) = (json(depth: depth - 1), json(depth: depth - 1))
            let (id, server) = id(["17", "x", "n\"m"])
            return (
                "{\"a\":\(one.sent),\(space)\"\(id)\":\(two.sent)}",
                "{\"a\":\(one.expected),\(space)\"\(Self.quoted(server.text))\":\(two.expected)}"
            )
        }
    }

    private static func quoted(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }
}
