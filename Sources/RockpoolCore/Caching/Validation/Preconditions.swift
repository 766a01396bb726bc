// Evaluates the client's conditions against a stored response: whether it already has the representation (RFC 9110 §13, RFC 9111 §4.3.2).
import HTTPTypes

/// Evaluation of `If-None-Match` and `If-Modified-Since`.
package enum Preconditions {
    package enum Outcome: Hashable, Sendable {
        /// Send the stored response whole.
        case full
        /// Send this 304 instead.
        case notModified(ResponseHead)
    }

    /// The response to `request` from `stored`. `If-Modified-Since` counts only without `If-None-Match`.
    package static func evaluate(request: RequestHead, stored: ResponseHead) -> Outcome {
        guard request.method == .get || request.method == .head, (200...299).contains(stored.status) else { return .full }
        if let list = request.fields[.ifNoneMatch] {
            return matches(list, stored: stored) ? .notModified(notModified(stored)) : .full
        }
        guard let since = request.fields.single(.ifModifiedSince).flatMap({ HTTPDate.parse($0) }) else { return .full }
        // Without a modification date the `Date` of the response is used (RFC 9111 §4.3.2).
        let date = stored.fields.single(.lastModified) ?? stored.fields.single(.date)
        guard let modified = date.flatMap({ HTTPDate.parse($0) }), modified <= since else { return .full }
        return .notModified(notModified(stored))
    }

    private static func matches(_ list: String, stored: ResponseHead) -> Bool {
        if FieldList.trimmed(list[...]) == "*" { return true }
        guard let own = stored.fields.single(.eTag).flatMap({ EntityTag($0) }) else { return false }
        return EntityTag.list(in: list).contains { $0.matchesWeakly(own) }
    }

    /// RFC 9110 §15.4.5: fields that guide caches stay; fields that describe the omitted content are removed.
    private static func notModified(_ stored: ResponseHead) -> ResponseHead {
        var head = ResponseHead(status: 304)
        for field in stored.fields where !contentFields.contains(field.name.canonicalName) { head.fields.append(field) }
        return head
    }

    private static let contentFields: Set<String> = [
        "content-length", "content-type", "content-encoding", "content-language", "content-range",
    ]
}
