// Undo of a decided conflict: it restores the losing side (issue 5.5; docs/reference/admin-api.md#conflicts `undo`).
import HTTPTypes

extension Conflict {
    /// Returns a new write that restores the losing side, on top of the upstream's current state: later changes by others are kept.
    ///
    /// - Parameter side: `mine` or `theirs`; nil for the side that lost. After a merge both sides may have lost.
    /// - Throws: A 409 with the reason why there is nothing to restore.
    package func undone(
        resource: Resource, over today: ConflictCase.Theirs, side: Resolution? = nil
    ) throws(Refusal) -> Resend {
        guard closedAt != nil, let resolution else { throw .conflict("it was not decided: there is nothing to undo") }
        if let side {
            guard resolution != .both, side != resolution, side == .mine || side == .theirs else {
                throw .conflict("\(side.rawValue) did not lose: there is nothing to undo")
            }
            if resolution == .merged { return try restored(whole: side, resource: resource, over: today) }
        }
        switch resolution {
        case .both: throw .conflict("both sides were kept: nothing was lost")
        case .theirs where kind == .deleteEdit, .mine where theirs == nil, .merged where theirs == nil:
            return try deleted(resource, over: today)
        case .merged: return try restored(try putBack(resource), resource: resource, over: today)
        case .theirs:
            guard let mine else { throw .conflict("what the write meant is not known as a whole") }
            return try restored(mine, resource: resource, over: today)
        case .mine:
            guard let theirs else { throw .conflict("the other side is not known") }
            return try restored(theirs, resource: resource, over: today)
        }
    }

    /// Restores one side of a merge as a whole, with the changes made to the result since.
    private func restored(whole side: Resolution, resource: Resource, over today: ConflictCase.Theirs) throws(Refusal) -> Resend {
        let isDeletion = side == .mine ? kind == .deleteEdit : theirs == nil
        if isDeletion { return try deleted(resource, over: today) }
        guard let loser = side == .mine ? mine : theirs else { throw .conflict("\(side.rawValue) is not known as a whole") }
        return try restored(loser, resource: resource, over: today)
    }

    /// Restores the losing side unchanged, or merges it with the changes made to the result since.
    private func restored(_ loser: Side, resource: Resource, over today: ConflictCase.Theirs) throws(Refusal) -> Resend {
        let shape = RepresentationShape(resource)
        let request = try RequestHead(method: .put, url: url, fields: [.contentType: loser.contentType ?? "application/json"])
        let reissue = RequestRewriter(request, body: [], resource: resource)
        let current = today.side.flatMap(shape.object)
        var restored = shape.object(of: loser)
        if let lost = restored, let current {
            let merge = result.flatMap(shape.object).map {
                ThreeWayMerge(base: $0, mine: lost, theirs: current, rules: MergeRules(resource, always: .client)).merged
            }
            let revised = shape.restamped(merge ?? lost, as: current)
            if shape.unstamped(revised) == shape.unstamped(current) { throw .conflict("the upstream has it already") }
            restored = revised
        }
        guard let restored else {
            return RequestRewriter(request, body: loser.body, resource: resource).again(over: today)
        }
        guard let resend = reissue.putting(restored, over: today) else { throw .conflict("its item has no id") }
        return resend
    }

    private func deleted(_ resource: Resource, over today: ConflictCase.Theirs) throws(Refusal) -> Resend {
        if today == .gone { throw .conflict("it is deleted already") }
        return RequestRewriter(try RequestHead(method: .delete, url: url), body: [], resource: resource).again(over: today)
    }

    /// Returns the result with the losing value restored in every place where one side lost.
    private func putBack(_ resource: Resource) throws(Refusal) -> Side {
        let shape = RepresentationShape(resource)
        guard let result, let merged = shape.object(of: result) else { throw .conflict("the result is not known as a whole") }
        var object = merged
        // Backwards, so that the indices of array elements stay valid until they are used.
        for field in fields.reversed() where field.isConflicting && (field.merged == field.mine || field.merged == field.theirs) {
            if let lost = field.merged == field.mine ? field.theirs : field.mine {
                field.pointer.set(lost, in: &object)
            } else {
                field.pointer.remove(from: &object)
            }
        }
        guard object != merged else { throw .conflict("no single side lost a value: name the one to restore, mine or theirs") }
        return Side(body: object.serialized(), contentType: result.contentType)
    }
}
