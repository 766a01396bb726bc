// Looking before a write where no condition would be checked (outbox.md §1.6: weak detection; §2.2).
import HTTPTypes

/// A GET just before sending, where that is the only way to see another's change.
package enum ConflictPrecheck {
    /// Whether a write must be preceded by a look: its base is known, and nothing it carries lets the upstream tell that base from
    /// another state. What comes between the look and the write is not seen.
    ///
    /// - Parameter isAnswer: The base is what the upstream answered to a write of ours: with nothing in it but what the upstream alone
    ///   writes, there is nothing to compare.
    package static func isNeeded(
        _ request: RequestHead, body: [UInt8], base: Conflict.Side?, _ resource: Resource, isAnswer: Bool = false
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

    /// Whether theirs is no longer the base: by strong ETag or version where these are the same, else by content, without what the
    /// upstream alone writes.
    ///
    /// - Parameter isAnswer: The base is what the upstream answered to a write of ours: that may leave members out.
    package static func hasMoved(
        from base: Conflict.Side, to theirs: Conflict.Side, _ resource: Resource, isAnswer: Bool = false
    ) -> Bool {
        if let before = base.etag.flatMap({ EntityTag($0) }), let now = theirs.etag.flatMap({ EntityTag($0) }), before.isStrong,
            before.matchesStrongly(now)
        {
            return false
        }
        let shape = RepresentationShape(resource)
        guard let before = shape.object(of: base), let now = shape.object(of: theirs) else { return base.body != theirs.body }
        if let version = resource.versionPlace, let known = version.get(in: before), known == version.get(in: now) { return false }
        if isAnswer, let said = shape.unstamped(before).object { return said.contains { now[$0.name] != $0.value } }
        return shape.unstamped(before) != shape.unstamped(now)
    }
}

extension Resource {
    /// Where its version is, within the object; nil where that is its ETag.
    var versionPlace: JSONPointer? { version == "etag" ? nil : JSONPointer(version) }
}
