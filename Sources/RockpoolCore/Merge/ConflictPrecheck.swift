// Looking before a write where no condition would be checked (outbox.md §1.6: weak detection; §2.2).
import HTTPTypes

/// A GET just before sending, where that is the only way to see another's change.
package enum ConflictPrecheck {
    /// Whether a write must be preceded by a look: its base is known, and nothing it carries lets the upstream tell that base from
    /// another state. What comes between the look and the write is not seen.
    package static func isNeeded(_ request: RequestHead, body: [UInt8], base: Conflict.Side?, _ resource: Resource) -> Bool {
        guard let base, request.method == .put || request.method == .patch || request.method == .delete else { return false }
        if [HTTPField.Name.ifMatch, .ifNoneMatch, .ifUnmodifiedSince].contains(where: request.fields.contains) { return false }
        guard let version = resource.versionPlace else {
            return !(base.etag.flatMap { EntityTag($0) }?.isStrong ?? false)
        }
        guard body.count <= ConflictCase.sizeLimit, let sent = try? JSONValue.parse(body) else { return true }
        return version.get(in: RepresentationShape(resource).unwrapped(sent)) == nil
    }

    /// Whether theirs is no longer the base: by strong ETag or version where these are the same, else by content, without what the
    /// upstream alone writes.
    package static func hasMoved(from base: Conflict.Side, to theirs: Conflict.Side, _ resource: Resource) -> Bool {
        if let before = base.etag.flatMap({ EntityTag($0) }), let now = theirs.etag.flatMap({ EntityTag($0) }), before.isStrong,
            before.matchesStrongly(now)
        {
            return false
        }
        let shape = RepresentationShape(resource)
        guard let before = shape.object(of: base), let now = shape.object(of: theirs) else { return base.body != theirs.body }
        if let version = resource.versionPlace, let known = version.get(in: before), known == version.get(in: now) { return false }
        return shape.unstamped(before) != shape.unstamped(now)
    }
}

extension Resource {
    /// Where its version is, within the object; nil where that is its ETag.
    var versionPlace: JSONPointer? { version == "etag" ? nil : JSONPointer(version) }
}
