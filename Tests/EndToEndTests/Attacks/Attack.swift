// An attack as a value: a sequence of requests that tries to make the cache serve one client a response caused by another
// (docs/security-model.md#whose-response).
import RockpoolTesting
import Testing

/// Requests in order, the origin's answer to each, and the expected result.
struct Attack: Sendable, CustomTestStringConvertible {
    let name: String
    /// The attacked rule, or the first description of the attack.
    let why: String
    let steps: [Step]
    /// Expectations of the last step's reply.
    let expected: [Expectation]

    var testDescription: String { name }

    init(_ name: String, _ why: String, _ steps: [Step], expect expected: Expectation...) {
        self.name = name
        self.why = why
        self.steps = steps
        self.expected = expected
    }

    /// One request by one client, and the origin's answer if the request reaches it.
    struct Step: Sendable {
        var method = "GET"
        var path = "/a"
        var fields: [String] = []
        var body: String?
        var answer: Answer
    }

    /// A condition on the reply, or on the events up to it.
    enum Expectation: Sendable {
        case body(String)
        /// The text is neither in the fields nor in the body.
        case nowhere(String)
        case oneOf([Int])
        case noField(String)
        /// The total number of requests for the last step's path at the origin.
        case asked(ClosedRange<Int>)
        /// No file of the server contains the text.
        case notOnDisk(String)

        static func status(_ statuses: Int...) -> Expectation { .oneOf(statuses) }
    }

    static func get(_ path: String = "/a", _ fields: String..., answer: Answer) -> Step { Step(path: path, fields: fields, answer: answer) }
}

/// The answer of a scripted origin.
enum Answer: Sendable {
    /// A message with its bytes on the wire; `closes` ends the connection afterwards.
    case message(String, closes: Bool)
    /// A 200 with the value of this request field as its body.
    case reflection(of: String, fields: [String])
    /// The origin is unreachable from now on.
    case down

    /// Returns a response with `Cache-Control: public, max-age=600` unless another value is given.
    static func body(_ body: String, status: Int = 200, cc: String? = "public, max-age=600", _ fields: String...) -> Answer {
        let lines = ["HTTP/1.1 \(status) X"] + (cc.map { ["Cache-Control: \($0)"] } ?? []) + fields
        return .message((lines + ["Content-Length: \(body.utf8.count)", "", body]).joined(separator: "\r\n"), closes: false)
    }

    /// Returns such a response with the given bytes as its body and no computed length.
    static func raw(_ body: String, cc: String? = "public, max-age=600", status: Int = 200, _ fields: String...) -> Answer {
        let lines = ["HTTP/1.1 \(status) X"] + (cc.map { ["Cache-Control: \($0)"] } ?? []) + fields
        return .message((lines + ["", body]).joined(separator: "\r\n"), closes: true)
    }

    static func reflection(of name: String) -> Answer { .reflection(of: name, fields: ["Cache-Control: public, max-age=600"]) }
}
