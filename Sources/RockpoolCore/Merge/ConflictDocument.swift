// A conflict as JSON: the same document for the admin API and the command line (contract §5).

/// Writes conflicts as JSON.
package enum ConflictDocument {
    /// The whole of it. A side is bare: JSON as itself, other text as a string; one that is absent, or neither, is null.
    package static func json(_ conflict: Conflict) -> JSONValue {
        var document = summary(of: conflict)
        document["base"] = side(conflict.base)
        document["mine"] = side(conflict.mine)
        document["theirs"] = side(conflict.theirs)
        document["merged"] = side(conflict.result)
        document["fields"] = .array(conflict.fields.map(field))
        return document
    }

    /// The same without the sides and the fields, for lists.
    package static func summary(of conflict: Conflict) -> JSONValue {
        [
            "id": .string(conflict.id),
            "operation": .string(conflict.operation),
            "upstream": .string(conflict.upstream),
            "url": .string(conflict.url),
            "entity": .string(conflict.entity),
            "kind": .string(conflict.kind.rawValue),
            "strategy": .string(conflict.strategy.rawValue),
            "detection": .string(conflict.detection.rawValue),
            "openedAt": .string(RFC3339.format(conflict.openedAt)),
            "closedAt": .optional(conflict.closedAt.map(RFC3339.format)),
            "resolution": .optional(conflict.resolution?.rawValue),
            "decidedBy": .optional(conflict.decidedBy?.rawValue),
        ]
    }

    private static func side(_ side: Conflict.Side?) -> JSONValue { side.map { OperationDocument.body($0.body) } ?? .null }

    private static func field(_ field: MergedField) -> JSONValue {
        [
            "pointer": .string(field.pointer.text),
            "base": field.base ?? .null,
            "mine": field.mine ?? .null,
            "theirs": field.theirs ?? .null,
            "merged": field.merged ?? .null,
            "conflicting": .bool(field.isConflicting),
        ]
    }
}
