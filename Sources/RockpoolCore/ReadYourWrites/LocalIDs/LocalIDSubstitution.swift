// The replacement of local ids by server ids just before a request is sent; the stored request does not change (docs/outbox.md#local-ids).
import HTTPTypes

/// The local ids of a request without a server id that can be written in their place. The request must not be sent.
package struct UnmappedLocalIDs: Error, Hashable {
    /// The ids, each once, in the order of the request.
    package var ids: [LocalID]

    package init(ids: [LocalID]) { self.ids = ids }
}

/// Replaces local ids by server ids.
package enum LocalIDSubstitution {
    /// Returns the request with every local id that the scan finds replaced by its server id in `map`, escaped as the place requires; every
    /// other byte stays as it is. A JSON value that is nothing but one local id gets the type of the server id.
    ///
    /// When the body contains a local id, its digests (`Content-Digest`, `Repr-Digest`, `Digest`, `Content-MD5`) are removed, since they no
    /// longer match, and so is `Content-Length`, which the sender sets.
    ///
    /// Throws when a local id is not in `map`, or its server id cannot be written there: a control character or a separator in a header
    /// field or in a body of unknown syntax, `..` as a path segment.
    package static func apply(
        head: RequestHead, body: [UInt8], map: [LocalID: ServerID]
    ) throws(UnmappedLocalIDs) -> (head: RequestHead, body: [UInt8]) {
        guard LocalIDScan.mayOccur(head: head, body: body) else { return (head, body) }
        var splicer = LocalIDSplicer(map: map)
        var new = head
        let target = Array(head.target.utf8)
        new.target = String(decoding: splicer.spliced(target, at: LocalIDScan.found(inTarget: target)), as: UTF8.self)
        new.fields = HTTPFields(head.fields.map { splicer.spliced($0) })
        let found = LocalIDScan.found(inBody: body, of: head.fields)
        let newBody = splicer.spliced(body, at: found)
        if !found.isEmpty { new.fields.removeAll { describesBody.contains($0.name.canonicalName) } }
        guard splicer.unmapped.isEmpty else { throw UnmappedLocalIDs(ids: splicer.unmapped) }
        return (new, newBody)
    }

    private static let describesBody: Set<String> = ["content-digest", "repr-digest", "digest", "content-md5", "content-length"]
}

/// Splices replacements into bytes, and collects the ids without one.
private struct LocalIDSplicer {
    let map: [LocalID: ServerID]
    private(set) var unmapped: [LocalID] = []

    init(map: [LocalID: ServerID]) { self.map = map }

    mutating func spliced(_ bytes: [UInt8], at found: [LocatedLocalID]) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(bytes.count)
        var copied = 0
        for one in found {
            let id = one.occurrence.id
            guard let replacement = map[id]?.written(at: one) else {
                if !unmapped.contains(id) { unmapped.append(id) }
                continue
            }
            let replaced = one.value ?? one.occurrence.range
            out += bytes[copied..<replaced.lowerBound]
            out += replacement
            copied = replaced.upperBound
        }
        return out + bytes[copied...]
    }

    mutating func spliced(_ field: HTTPField) -> HTTPField {
        let found = LocalIDScan.found(in: field)
        if found.isEmpty { return field }
        var new = HTTPField(name: field.name, lenientValue: spliced(field.valueBytes, at: found))
        new.indexingStrategy = field.indexingStrategy
        return new
    }
}
