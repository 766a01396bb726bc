// Conditions on states that exist only here: `If-Match: "loc-17"` means "on top of operation 17" (outbox.md §1.4; RFC 9110 §13.1).
package import HTTPTypes

extension HTTPFields {
    /// The local tags of `If-Match` and `If-None-Match`, in their order. Each operation they name comes before this one.
    package var localETags: [LocalETag] {
        [HTTPField.Name.ifMatch, .ifNoneMatch].flatMap { EntityTag.list(self[$0] ?? "") }.compactMap { LocalETag($0) }
    }

    /// The fields with the server's tags in the place of local ones; every other tag stays.
    ///
    /// Where `real` knows none, `If-Match` goes as a whole: the client accepted a state that the lane has reached, and what is left
    /// would refuse it. `If-None-Match` loses that tag only, and goes when none is left. A weak tag never matches in `If-Match`
    /// (RFC 9110 §13.1.1): give nil there unless a 412 is wanted.
    package func replacingLocalETags(_ real: (LocalETag) -> EntityTag?) -> HTTPFields {
        var fields = self
        for name in [HTTPField.Name.ifMatch, .ifNoneMatch] {
            let tags = EntityTag.list(self[name] ?? "")
            guard tags.contains(where: { LocalETag($0) != nil }) else { continue }
            let replaced = tags.compactMap { tag in LocalETag(tag).map(real) ?? tag }
            let isKept = name == .ifMatch ? replaced.count == tags.count : !replaced.isEmpty
            fields[name] = isKept ? replaced.map(\.fieldValue).joined(separator: ", ") : nil
        }
        return fields
    }
}
