// The read before a write where the upstream would check no condition (docs/outbox.md#detection: weak detection; §2.2).
package import HTTPTypes

/// A GET just before sending, where that is the only way to detect another change.
package enum ConflictPrecheck {
    /// True if a write must be preceded by a read: its base is known, and no condition in the request lets the upstream distinguish that
    /// base from another state. A change between the read and the write is not detected.
    ///
    /// - Parameter isAnswer: The base is the upstream's answer to an earlier write of this outbox: if it contains only members that the
    ///   upstream alone writes, there is nothing to compare.
    package static func isNeeded(
        _ request: RequestHead, body: [UInt8], base: Conflict.Side?, resource: Resource, isAnswer: Bool = false
    ) -> Bool {
        guard let base, request.method == .put || request.method == .patch || request.method == .delete else { return false }
        if [HTTPField.Name.ifMatch, .ifNoneMatch, .ifUnmodifiedSince].contains(where: request.fields.contains) { return false }
        let shape = RepresentationShape(resource)
        if isAnswer, let object = shape.object(of: base), shape.unstamped(object).object?.isEmpty ?? false { return false }
        guard let version = resource.versionPlace else {
            return !(base.etag.flatMap { EntityTag($0) }?.isStrong ?? false)
        }
        guard body.count <= ConflictCase.sizeLimit, let sent = try? JSONValue.parse(body) else { return true }
        return version.get(in: shape.unwrapped(sent)) == nil
    }

    /// True if theirs differs from the base: the sides are equal if their strong ETag or version is equal, otherwise their content is
    /// compared without the members that the upstream alone writes.
    ///
    /// - Parameters:
    ///   - isAnswer: The base is the upstream's answer to an earlier write of this outbox, which may omit members.
    ///   - method: The write's. A PUT would remove members that its client does not know, because it has seen a list only.
    package static func hasMoved(
        from base: Conflict.Side, to theirs: Conflict.Side, resource: Resource, isAnswer: Bool = false, by method: HTTPRequest.Method = .put
    ) -> Bool {
        if let before = base.etag.flatMap({ EntityTag($0) }), let now = theirs.etag.flatMap({ EntityTag($0) }), before.isStrong,
            before.matchesStrongly(now)
        {
            return false
        }
        let shape = RepresentationShape(resource)
        guard let before = shape.object(of: base), let now = shape.object(of: theirs) else { return base.body != theirs.body }
        if let version = resource.versionPlace, let known = version.get(in: before), known == version.get(in: now) { return false }
        if isAnswer || (base.isListed && method != .put), let said = shape.unstamped(before).object {
            return said.contains { now[$0.name] != $0.value }
        }
        return shape.unstamped(before) != shape.unstamped(now)
    }
}
