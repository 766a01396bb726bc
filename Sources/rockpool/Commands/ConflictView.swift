// A complete conflict for display: its fields side by side, or both sides if it has no fields (docs/reference/admin-api.md#conflicts).
import RockpoolCore

struct ConflictView {
    let report: ConflictReport
    /// Parsed with our own parser: Foundation's numbers lose digits, and conflicts may differ in digits only.
    let document: JSONValue

    /// - Parameter reply: the reply of `GET /v1/conflicts/{id}`.
    init(_ reply: AdminReply) throws {
        report = try reply.decoded()
        do {
            // The sides are nested in the document: it may be three levels deeper and longer than one of them.
            document = try JSONValue.parse(Array(reply.body), sizeLimit: .max, depthLimit: JSONValue.depthLimit + 3)
        } catch {
            throw CommandFailure(.failed, "the server's response cannot be read: \(error)")
        }
    }

    /// The differing fields; `!` marks those that wait for a decision: both sides changed them, and no rule has merged them.
    var fields: TextTable {
        TextTable(
            columns: [.text(""), .text("FIELD"), .text("BASE"), .text("MINE"), .text("THEIRS"), .text("MERGED")],
            rows: (document["fields"]?.array ?? []).map { field in
                let isUndecided = field["conflicting"]?.bool == true && field["merged"]?.isNull != false
                return [isUndecided ? .init("!", .warning) : "", .init(field["pointer"]?.string ?? "")]
                    + ["base", "mine", "theirs", "merged"].map { .init(Self.text(of: field[$0])) }
            })
    }

    /// The complete sides, each under its name, if there are no fields to compare.
    var sides: [String] {
        guard fields.rows.isEmpty else { return [] }
        return ["base", "mine", "theirs", "merged"].map { name in
            guard let side = document[name], !side.isNull else { return "\(name): –" }
            let lines = (side.string ?? side.indented()).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
            return ([name + ":"] + lines.map { "  " + String($0).inOneLine }).joined(separator: "\n")
        }
    }

    private static func text(of value: JSONValue?) -> String {
        guard let value, !value.isNull else { return "–" }
        return String(decoding: value.serialized(), as: UTF8.self)
    }
}

extension Display {
    func print(_ conflict: ConflictView) {
        print(conflict.report.tables + [conflict.fields])
        if let seen = OperationView.seen(in: conflict.document) { print("\n" + seen.inOneLine) }
        for side in conflict.sides { print("\n" + side) }
        if let advice = conflict.report.advice { print("\n" + advice.inOneLine) }
    }
}
