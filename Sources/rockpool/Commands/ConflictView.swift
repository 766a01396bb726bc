// One conflict whole, for people: its fields side by side, or where it has none both sides (contract §5).
import RockpoolCore

struct ConflictView {
    let report: ConflictReport
    /// Read by ourselves: Foundation's numbers lose digits, and a merge is about digits too.
    let document: JSONValue

    /// - Parameter reply: that of `GET /v1/conflicts/{id}`.
    init(_ reply: AdminReply) throws {
        report = try reply.decoded()
        do {
            // Sides within a document: three levels deeper, and together longer, than one of them may be.
            document = try JSONValue.parse(Array(reply.body), sizeLimit: .max, depthLimit: JSONValue.depthLimit + 3)
        } catch {
            throw CommandFailure(.failed, "the server's answer cannot be read: \(error)")
        }
    }

    /// Each place that differs; `!` where both have changed it, and differently.
    var fields: TextTable {
        TextTable(
            columns: [.text(""), .text("FIELD"), .text("BASE"), .text("MINE"), .text("THEIRS"), .text("MERGED")],
            rows: (document["fields"]?.array ?? []).map { field in
                let isConflicting = field["conflicting"]?.bool == true
                return [isConflicting ? .init("!", .warning) : "", .init(field["pointer"]?.string ?? "")]
                    + ["base", "mine", "theirs", "merged"].map { .init(Self.text(of: field[$0])) }
            })
    }

    /// The sides whole, each under its name, where there are no fields to compare.
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
        for side in conflict.sides { print("\n" + side) }
        if let advice = conflict.report.advice { print("\n" + advice.inOneLine) }
    }
}
