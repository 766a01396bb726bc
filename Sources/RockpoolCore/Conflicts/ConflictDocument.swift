// The JSON document of a conflict, shared by the admin API and the command line (docs/reference/admin-api.md#conflicts).

/// Writes conflicts as JSON.
package enum ConflictDocument {
    /// Returns the whole document. A side has no envelope: JSON is embedded, other text is a string; an absent side, or one that is
    /// neither, is null.
    /// - Parameter seen: when and from where the client had got the base; nil where that is not known.
    package static func json(of conflict: Conflict, seen: BaseSeen? = nil) -> JSONValue {
        var document = summary(of: conflict)
        document["seen"] = seen?.json ?? .null
        document["base"] = side(of: conflict.base)
        document["mine"] = side(of: conflict.mine)
        document["theirs"] = side(of: conflict.theirs)
        document["merged"] = side(of: conflict.result)
        document["fields"] = .array(conflict.fields.map(field))
        return document
    }

    /// Returns the document without the sides and the fields, for lists.
    package static func summary(of conflict: Conflict) -> JSONValue {
        [
            "id": .string(conflict.id),
            "operation": .string(conflict.operation),
            "upstream": .string(conflict.upstream),
            "url": .string(SecretParameters.redacted(url: conflict.url)),
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

    private static func side(of side: Conflict.Side?) -> JSONValue { side.map { OperationDocument.body(of: $0.body) } ?? .null }

    private static func field(of field: MergedField) -> JSONValue {
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
