// The table of strategies: what each does with each kind of conflict (outbox.md §1.6). The decisions and the README read it.

extension Resource.Conflict {
    /// What becomes of a conflict, before it is known whether that can be done: what cannot waits for a person.
    package enum Course: String, CaseIterable, Sendable {
        case theirs = "theirs stands"
        case mine = "mine is carried out on theirs"
        case newer = "the later of the two stands; asks where the upstream gives no time"
        case merge = "merged by field; asks without a base"
        case both = "theirs stands, mine becomes a new entity"
        case ask = "waits for a person"
    }

    /// The course of a kind.
    package func course(of kind: Conflict.Kind) -> Course {
        switch (self, kind) {
        case (.lastWriteWins, _): .newer
        case (.serverWins, _): .theirs
        case (.clientWins, _): .mine
        case (.fieldMerge, .editEdit): .merge
        case (.fieldMerge, _): .ask
        // Of a deletion and an edit, the edit is all there is to keep.
        case (.keepBoth, .deleteEdit): .theirs
        case (.keepBoth, _): .both
        case (.ask, _): .ask
        }
    }

    /// The strategies by kind, and the rules of fields, in Markdown: the README's own words.
    package static func table() -> String {
        let kinds = Conflict.Kind.allCases
        let strategies = allCases.map { strategy in
            ["`\(strategy.rawValue)`"] + kinds.map { strategy.course(of: $0).rawValue }
        }
        let fields = FieldStrategy.meanings.map { ["`\($0.word)`", $0.meaning] }
        return rows(["strategy"] + kinds.map(\.rawValue), strategies) + "\n"
            + rows(["field strategy", "where both sides changed the field"], fields)
    }

    private static func rows(_ head: [String], _ rows: [[String]]) -> String {
        ([head, head.map { _ in "---" }] + rows).map { "| " + $0.joined(separator: " | ") + " |\n" }.joined()
    }
}
