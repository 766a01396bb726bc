// A complete operation for display: the facts, every attempt, the request and the answer (docs/reference/cli.md#outbox-show).
import RockpoolCore

struct OperationView {
    /// The most lines of a body; the rest is left to `--format json`.
    private static let bodyLines = 40

    let report: OperationReport
    /// Parsed with our own parser, which keeps the digits of numbers and the order of members.
    let document: JSONValue

    /// - Parameter reply: the reply of `GET /v1/operations/{id}`.
    init(_ reply: AdminReply) throws {
        report = try reply.decoded()
        do {
            document = try JSONValue.parse(Array(reply.body), sizeLimit: .max, depthLimit: JSONValue.depthLimit + 3)
        } catch {
            throw CommandFailure(.failed, "the server's response cannot be read: \(error)")
        }
    }

    /// The request as a block of lines: the request line, the fields, the body.
    var request: [String] {
        let size = document["bodyBytes"]?.integer ?? 0
        let hidden = document["bodyBase64"] != nil || document["body"]?.isNull != false
        let body = hidden && size > 0 ? ["(\(ForPeople.bytes(size)) that are no text)"] : Self.lines(of: document["body"])
        return ["REQUEST", "\(report.method) \(report.url)".inOneLine] + Self.fields(document["headers"]) + body
    }

    /// The final answer of the upstream; empty without one.
    var answer: [String] {
        guard let result = document["result"], !result.isNull else { return [] }
        return ["ANSWER", "\(result["status"]?.integer ?? 0)"] + Self.fields(result["headers"]) + Self.lines(of: result["body"])
    }

    /// The commands that are allowed now, as one line; nil if there are none.
    var advice: String? {
        if let conflict = report.conflict { return "Next: rockpool conflicts show \(conflict)" }
        let repeating = (report.repeats ?? 0) > 0 ? ["repeat"] : []
        let allowed = (document["commands"]?.array ?? []).compactMap(\.string) + repeating
        return allowed.isEmpty ? nil : "Next: rockpool outbox \(allowed.joined(separator: "|")) \(report.id)"
    }

    /// What the writer had in front of it, as a sentence; nil where that is not known.
    static func seen(in document: JSONValue) -> String? {
        guard let seen = document["seen"], let moment = seen["at"]?.string else { return nil }
        let version = seen["version"]?.string.map { " as \($0)" } ?? ""
        let source = seen["from"]?.string.map { " from the \($0)" } ?? ""
        return "Its client had read it\(source)\(version), last at \(moment)."
    }

    private static func fields(_ fields: JSONValue?) -> [String] {
        (fields?.object ?? JSONObject()).flatMap { name, value in
            (value.array ?? [value]).map { "\(name): \($0.string ?? "")".inOneLine }
        }
    }

    /// The lines of a body after an empty line.
    private static func lines(of body: JSONValue?) -> [String] {
        guard let body, !body.isNull else { return [] }
        let lines = (body.string ?? body.indented()).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        let shown = lines.prefix(bodyLines).map { String($0).inOneLine }
        return [""] + shown + (lines.count > bodyLines ? ["… \((lines.count - bodyLines).counted("more line")): --format json"] : [])
    }
}

extension Display {
    func print(_ view: OperationView) {
        print(view.report.tables)
        if let seen = OperationView.seen(in: view.document) { print("\n" + seen.inOneLine) }
        for block in [view.request, view.answer] where !block.isEmpty {
            let heading = hasColour ? Colour.heading.painted(block[0]) : block[0]
            print("\n" + ([heading] + block.dropFirst().map { $0.isEmpty ? "" : "  " + $0 }).joined(separator: "\n"))
        }
        if let advice = view.advice { print("\n" + advice.inOneLine) }
    }
}
