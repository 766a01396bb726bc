// One merge patch with the effect of two (RFC 7396; outbox.md §2.2: they do not always compose).

/// Joining patches before any of them was sent. Where the upstream may take an object in a patch for the member's new value (`.shallow`,
/// as many do with `application/json`), only what is the same by both readings is joined.
struct MergePatchComposition {
    enum Reading { case merge, shallow }

    let reading: Reading

    /// The patch that does to any value what `earlier` and then `later` do; nil when there is none: an object after something that is no
    /// object starts from nothing, but in one patch it would be merged into what the value holds.
    func composed(_ earlier: JSONValue, _ later: JSONValue) -> JSONValue? {
        guard case .object(let changes) = later else { return reading == .merge ? later : nil }
        guard case .object(var members) = earlier else { return nil }
        for (name, change) in changes {
            if let before = members[name], change.object != nil {
                guard reading == .merge, let both = composed(before, change) else { return nil }
                members[name] = both
            } else {
                members[name] = change
            }
        }
        return .object(members)
    }

    /// The object a PUT of `object` and then `patch` leave; nil when that depends on the upstream: what the PUT left out may still be
    /// there, so that removing it or merging into it is not the same as never naming it.
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
