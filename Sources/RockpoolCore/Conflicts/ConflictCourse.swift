// The table of strategies by kind of conflict (docs/outbox.md#strategies). The decisions and the README are generated from it.

extension Resource.Conflict {
    /// The intended outcome of a conflict, before its feasibility is known: an outcome that is not feasible waits for a person.
    package enum Course: String, CaseIterable, Sendable {
        case theirs = "theirs stands"
        case mine = "mine is carried out on theirs"
        case newer = "the later of the two stands; asks where the upstream gives no time"
        case merge = "merged by field; asks without a base"
        case both = "theirs stands, mine becomes a new entity"
        case ask = "waits for a person"
    }

    /// Returns the course for a kind of conflict.
    package func course(of kind: Conflict.Kind) -> Course {
        switch (self, kind) {
        case (.lastWriteWins, _): .newer
        case (.serverWins, _): .theirs
        case (.clientWins, _): .mine
        case (.fieldMerge, .editEdit): .merge
        case (.fieldMerge, _): .ask
        // Of a deletion and an edit, only the edit leaves anything to keep.
        case (.keepBoth, .deleteEdit): .theirs
        case (.keepBoth, _): .both
        case (.ask, _): .ask
        }
    }

    /// Returns the strategies by kind and the field rules as Markdown, which the README includes verbatim.
    package static func table() -> String {
        let kinds = Conflict.Kind.allCases
        let strategies = allCases.map { strategy in
            ["`\(strategy.rawValue)`"] + kinds.map { strategy.course(of: $0).rawValue }
        }
        let fields = FieldStrategy.meanings.map { ["`\($0.word)`", $0.meaning] }
        return rows(["strategy"] + kinds.map(\.rawValue), rows: strategies) + "\n"
            + rows(["field strategy", "where both sides changed the field"], rows: fields)
    }

    private static func rows(_ head: [String], rows: [[String]]) -> String {
        ([head, head.map { _ in "---" }] + rows).map { "| " + $0.joined(separator: " | ") + " |\n" }.joined()
    }
}
