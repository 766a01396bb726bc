// Real ids put in the place of local ones just before a request is sent: the stored request stays as it came (outbox.md §1.9).
import HTTPTypes

/// The local ids of a request that have no server id that can be written where they stand. It must not be sent.
package struct UnmappedLocalIDs: Error, Hashable {
    /// Each once, in the order of the request.
    package var ids: [LocalID]

    package init(ids: [LocalID]) { self.ids = ids }
}

/// Exchanging local ids for server ids.
package enum LocalIDSubstitution {
    /// The request with the server id of `map` in the place of every local id that the scan finds, escaped as the place requires;
    /// every other byte stays as it is. A JSON string that is nothing but one local id becomes a number where the server's is one.
    ///
    /// When the body changes its digests (`Content-Digest`, `Repr-Digest`, `Digest`, `Content-MD5`) go, since they are not true any
    /// more, and so does `Content-Length`, which the sender sets.
    ///
    /// Throws when a local id is not in `map`, or its server id cannot be written there: a control character or a separator in a
    /// header field or in a body of unknown syntax, `..` as a path segment.
    package static func apply(
        head: RequestHead, body: [UInt8], map: [LocalID: ServerID]
    ) throws(UnmappedLocalIDs) -> (head: RequestHead, body: [UInt8]) {
        guard LocalIDScan.mayOccur(head: head, body: body) else { return (head, body) }
        var splicer = LocalIDSplicer(map: map)
        var new = head
        let target = Array(head.target.utf8)
        new.target = String(decoding: splicer.spliced(target, LocalIDScan.found(inTarget: target)), as: UTF8.self)
        new.fields = HTTPFields(head.fields.map { splicer.spliced($0) })
        let found = LocalIDScan.found(inBody: body, of: head.fields)
        let newBody = splicer.spliced(body, found)
        if !found.isEmpty { new.fields.removeAll { describesBody.contains($0.name.canonicalName) } }
        guard splicer.unmapped.isEmpty else { throw UnmappedLocalIDs(ids: splicer.unmapped) }
        return (new, newBody)
    }

    private static let describesBody: Set<String> = ["content-digest", "repr-digest", "digest", "content-md5", "content-length"]
}

/// Puts replacements into bytes, and gathers the ids that have none.
private struct LocalIDSplicer {
    let map: [LocalID: ServerID]
    private(set) var unmapped: [LocalID] = []

    init(map: [LocalID: ServerID]) { self.map = map }

    mutating func spliced(_ bytes: [UInt8], _ found: [LocatedLocalID]) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(bytes.count)
        var copied = 0
        for one in found {
            let id = one.occurrence.id
            guard let replacement = map[id]?.written(at: one) else {
                if !unmapped.contains(id) { unmapped.append(id) }
                continue
            }
            let quotes = one.isWholeValue ? 1 : 0
            out += bytes[copied..<one.occurrence.range.lowerBound - quotes]
            out += replacement
            copied = one.occurrence.range.upperBound + quotes
        }
        return out + bytes[copied...]
    }

    mutating func spliced(_ field: HTTPField) -> HTTPField {
        let found = LocalIDScan.found(in: field)
        if found.isEmpty { return field }
        var new = HTTPField(name: field.name, lenientValue: spliced(field.valueBytes, found))
        new.indexingStrategy = field.indexingStrategy
        return new
    }
}
