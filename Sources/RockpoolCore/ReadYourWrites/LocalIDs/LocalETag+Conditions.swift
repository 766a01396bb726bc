// Conditions on local states: `If-Match: "loc-17"` means "on top of operation 17" (docs/outbox.md#local-etags; RFC 9110 §13.1).
package import HTTPTypes

extension HTTPFields {
    /// The local tags of `If-Match` and `If-None-Match`, in their order. Each operation they name precedes this one.
    package var localETags: [LocalETag] {
        [HTTPField.Name.ifMatch, .ifNoneMatch].flatMap { EntityTag.list(in: self[$0] ?? "") }.compactMap { LocalETag($0) }
    }

    /// Returns the fields with local tags replaced by the server's; every other tag stays.
    ///
    /// Where `real` returns nil, `If-Match` is removed as a whole: the client accepted a state that the lane has reached, and the remaining
    /// tags would make the condition fail. So it is for a weak tag, which never matches there (RFC 9110 §13.1.1): the write is compared by
    /// a read before it instead. `If-None-Match` loses that tag only, and is removed when no tag remains.
    package func replacingLocalETags(_ real: (LocalETag) -> EntityTag?) -> HTTPFields {
        var fields = self
        for name in [HTTPField.Name.ifMatch, .ifNoneMatch] {
            let tags = EntityTag.list(in: self[name] ?? "")
            guard tags.contains(where: { LocalETag($0) != nil }) else { continue }
            let replaced = tags.compactMap { tag -> EntityTag? in
                guard let local = LocalETag(tag) else { return tag }
                // A client that writes tags without quotes expects to be understood so.
                return real(local).flatMap { name == .ifMatch && !$0.isStrong ? nil : tag.isStrong || tag.isWeak ? $0 : EntityTag($0.bare) }
            }
            let isKept = name == .ifMatch ? replaced.count == tags.count : !replaced.isEmpty
            fields[name] = isKept ? replaced.map(\.fieldValue).joined(separator: ", ") : nil
        }
        return fields
    }
}
