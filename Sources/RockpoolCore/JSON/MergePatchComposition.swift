// Composes two merge patches into one with the same effect (RFC 7396; docs/outbox.md#squash: they do not always compose).

/// Composes patches before the first of them is sent. If the upstream may replace a member by an object in the patch instead of merging it
/// (`.shallow`, as many do with `application/json`), only patches with the same effect under both interpretations are composed.
struct MergePatchComposition {
    enum Reading { case merge, shallow }

    let reading: Reading

    /// The patch with the effect of `earlier` followed by `later`; nil if there is none: an object after a non-object starts from an empty
    /// object, but in one patch it would be merged into the existing value.
    func composed(earlier: JSONValue, later: JSONValue) -> JSONValue? {
        guard case .object(let changes) = later else { return reading == .merge ? later : nil }
        guard case .object(var members) = earlier else { return nil }
        for (name, change) in changes {
            if let before = members[name], change.object != nil {
                guard reading == .merge, let both = composed(earlier: before, later: change) else { return nil }
                members[name] = both
            } else {
                members[name] = change
            }
        }
        return .object(members)
    }

    /// The object that results from a PUT of `object` followed by `patch`; nil if it depends on the upstream: members omitted by the PUT
    /// may still exist there, so that removing one or merging into it differs from omitting it.
    func applied(_ patch: JSONValue, to object: JSONValue) -> JSONValue? {
        guard case .object(let changes) = patch, case .object(var members) = object else { return nil }
        for (name, change) in changes {
            if change.object == nil, !change.isNull {
                members[name] = change
                continue
            }
            guard reading == .merge, let before = members[name] else { return nil }
            if change.isNull {
                members[name] = nil
            } else if before.object == nil {
                members[name] = before.merging(change)
            } else {
                guard let both = applied(change, to: before) else { return nil }
                members[name] = both
            }
        }
        return .object(members)
    }
}
