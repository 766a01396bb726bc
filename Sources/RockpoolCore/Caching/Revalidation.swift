// Asking whether a stored response still holds, and taking the answer in (RFC 9111 §3.2, §4.3).
package import HTTPTypes

/// Validation of stored responses.
package enum Revalidation {
    /// The conditions to send: every stored tag, since any variant may be the right one, and the selected one's date (§4.3.1).
    package static func conditionals(candidates: [StoredResponse], selected: Int) -> HTTPFields {
        guard candidates.indices.contains(selected) else { return [:] }
        var fields = HTTPFields()
        if candidates[selected].validity.lastModified != nil {
            fields[.ifModifiedSince] = candidates[selected].head.fields[.lastModified]
            // Tags of other variants would overrule the only validator this one has (RFC 9110 §13.1.3).
            if candidates[selected].entityTag == nil { return fields }
        }
        var tags: [EntityTag] = []
        // The 304 for a part's tag could not be answered with the whole.
        for index in [selected] + candidates.indices.filter({ $0 != selected && candidates[$0].part == nil }) {
            if let tag = candidates[index].entityTag, !tags.contains(tag) { tags.append(tag) }
        }
        if !tags.isEmpty { fields[.ifNoneMatch] = tags.map(\.fieldValue).joined(separator: ", ") }
        return fields
    }

    /// Whether a 304 is about `stored` (§4.3.4). One without any validator answers for the response that was asked about.
    package static func selects(_ stored: StoredResponse, notModified: ResponseHead) -> Bool {
        if let tag = notModified.fields.single(.eTag).flatMap({ EntityTag($0) }) {
            guard let own = stored.entityTag else { return false }
            return tag.isWeak ? tag.matchesWeakly(own) : tag.matchesStrongly(own)
        }
        guard let date = notModified.fields.single(.lastModified) else { return true }
        guard let own = stored.head.fields.single(.lastModified) else { return false }
        return own == date || HTTPDate.parse(own, now: stored.responseTime) == HTTPDate.parse(date, now: stored.responseTime)
    }

    /// Which candidate a 304 is about: the one it was asked for where that can be; nil when it is none of those stored, which are then not
    /// to be updated (§4.3.4).
    package static func selected(_ candidates: [StoredResponse], asked: Int, notModified: ResponseHead) -> Int? {
        guard candidates.indices.contains(asked) else { return nil }
        if selects(candidates[asked], notModified: notModified) { return asked }
        return candidates.firstIndex { $0.part == nil && selects($0, notModified: notModified) }
    }

    /// `stored` with what a 304 says of it (§3.2): its fields replace those stored, but for what describes the bytes kept, belongs to
    /// the connection, or is excepted from storing by the 304's own `no-cache="…"` and `Set-Cookie`.
    /// - Parameter request: The validating request; its fields are taken over where the 304 changes what the response varies by.
    package static func freshened(
        _ stored: StoredResponse, by notModified: ResponseHead, request: RequestHead? = nil, requestTime: Timestamp,
        responseTime: Timestamp
    ) -> StoredResponse {
        var fields = stored.head.fields
        var excluded = StoredFields.excluded(from: notModified.fields).union(describingBytes)
        let directives = CacheControl.governing(notModified.fields).directives
        for name in directives.noCache.names + directives.isPrivate.names {
            excluded.insert(name.canonicalName)
            fields[values: name] = []
        }
        if stored.entityTag != nil { excluded.insert(HTTPField.Name.eTag.canonicalName) }

        var replaced: Set<String> = []
        // Both tell of the old exchange; keeping them would add its age to the new one's.
        fields[.age] = nil
        fields[.date] = HTTPDate.format(responseTime)
        for field in notModified.fields where !excluded.contains(field.name.canonicalName) {
            if replaced.insert(field.name.canonicalName).inserted { fields[values: field.name] = [] }
            fields.append(field)
        }

        let updated = ResponseHead(status: stored.head.status, fields: fields)
        let head = request.map { ImpliedVary.completed(updated, for: $0) } ?? updated
        var freshened = StoredResponse(
            head: head, requestFields: stored.requestFields, requestTime: requestTime, responseTime: responseTime,
            bodyLength: stored.bodyLength, category: stored.category, assignedTTL: stored.assignedTTL)
        // Else it stays the variant it was: the 304 may have selected another one than the request does (§4.3.4).
        if freshened.validity.varyNames != stored.validity.varyNames {
            freshened.requestFields = request.flatMap { Vary.selectingFields(response: head, request: $0) } ?? stored.requestFields
        }
        return freshened
    }

    /// Fields of the bytes that are stored, which a message without them cannot change.
    private static let describingBytes: Set<String> = ["content-length", "content-encoding", "content-range"]

    /// Whether a freshened response may still be kept where it is: a 304 can say `no-store` or `private` too.
    package static func mayStay(_ freshened: StoredResponse, in partition: StoragePartition, rule: Route.Store = .standard) -> Bool {
        if freshened.directives.noStore && !freshened.directives.mustUnderstand && rule != .always { return false }
        return partition != .shared || freshened.directives.isPrivate != .all
    }
}

extension Revalidation {
    /// What the answer to a HEAD says of the stored answer to a GET (§4.3.5).
    package enum HeadOutcome: Hashable, Sendable {
        /// The same representation; its fields are up to date again.
        case freshened(StoredResponse)
        /// Another representation: what is stored is stale.
        case outdated
        /// Says nothing of it.
        case unrelated
    }

    /// Compares a HEAD's response with the stored GET's: validators and length that are given must be the same, and a status that speaks
    /// of the resource must not deny it.
    /// - Parameter length: bytes that a GET's body would have, where the answer says that; framing is no field here.
    package static func head(
        _ stored: StoredResponse, by response: ResponseHead, length: Int64?, requestTime: Timestamp, responseTime: Timestamp
    ) -> HeadOutcome {
        guard stored.head.status == 200 || stored.part != nil else { return .unrelated }
        if StatusCode.contradictsOK(response.status) { return .outdated }
        guard response.status == 200 else { return .unrelated }
        let sameLength = length == nil || length == (stored.part?.length ?? stored.bodyLength)
        guard sameLength, isSame(.eTag, stored, response), isSame(.lastModified, stored, response) else { return .outdated }
        // Of which variant the stored one then is, a HEAD does not say.
        guard response.fields[.vary] == nil || isSame(.vary, stored, response) else { return .outdated }
        return .freshened(freshened(stored, by: response, requestTime: requestTime, responseTime: responseTime))
    }

    private static func isSame(_ name: HTTPField.Name, _ stored: StoredResponse, _ response: ResponseHead) -> Bool {
        response.fields[name] == nil || response.fields[name] == stored.head.fields[name]
    }
}
