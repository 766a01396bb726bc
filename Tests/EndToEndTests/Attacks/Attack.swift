// A sequence that tries to make the cache give one client what another brought about (docs/security-model.md#whose-response), as a value.
import RockpoolTesting
import Testing

/// Requests in order, what the origin answers to each, and what must then hold.
struct Attack: Sendable, CustomTestStringConvertible {
    let name: String
    /// The rule it tries, or where it was first described.
    let why: String
    let steps: [Step]
    /// Of the last step's reply.
    let expected: [Expectation]

    var testDescription: String { name }

    init(_ name: String, _ why: String, _ steps: [Step], expect expected: Expectation...) {
        self.name = name
        self.why = why
        self.steps = steps
        self.expected = expected
    }

    /// One request by one client, and what the origin says if it is asked.
    struct Step: Sendable {
        var method = "GET"
        var path = "/a"
        var fields: [String] = []
        var body: String?
        var answer: Answer
    }

    /// What must hold of a reply, or of what has happened until then.
    enum Expectation: Sendable {
        case body(String)
        /// Neither its fields nor its body.
        case nowhere(String)
        case oneOf([Int])
        case noField(String)
        /// How often the origin was asked for the last step's path, in all.
        case asked(ClosedRange<Int>)
        /// No file of the server's holds it.
        case notOnDisk(String)

        static func status(_ statuses: Int...) -> Expectation { .oneOf(statuses) }
    }

    static func get(_ path: String = "/a", _ fields: String..., answer: Answer) -> Step { Step(path: path, fields: fields, answer: answer) }
}

/// What a scripted origin answers.
enum Answer: Sendable {
    /// A message as it goes on the wire; then the connection ends, if so.
    case message(String, closes: Bool)
    /// 200 with this request field's value as its body.
    case reflection(of: String, fields: [String])
    /// It can no longer be reached.
    case down

    /// A response with `Cache-Control: public, max-age=600` unless said otherwise.
    static func body(_ body: String, status: Int = 200, cc: String? = "public, max-age=600", _ fields: String...) -> Answer {
        let lines = ["HTTP/1.1 \(status) X"] + (cc.map { ["Cache-Control: \($0)"] } ?? []) + fields
        return .message((lines + ["Content-Length: \(body.utf8.count)", "", body]).joined(separator: "\r\n"), closes: false)
    }

    /// The same, as it is, without a length of its own.
    static func raw(_ body: String, cc: String? = "public, max-age=600", status: Int = 200, _ fields: String...) -> Answer {
        let lines = ["HTTP/1.1 \(status) X"] + (cc.map { ["Cache-Control: \($0)"] } ?? []) + fields
        return .message((lines + ["", body]).joined(separator: "\r\n"), closes: true)
    }

    static func reflection(of name: String) -> Answer { .reflection(of: name, fields: ["Cache-Control: public, max-age=600"]) }
}
