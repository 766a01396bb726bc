// Local ids in a stored write: all are found and replaced, and nothing else is changed (docs/outbox.md#local-ids).
import HTTPTypes
import RockpoolCore

extension FuzzTarget {
    /// Lines: a target, fields, an empty line, a body.
    static func localIDs(_ input: FuzzInput) throws(BrokenProperty) {
        let (fields, start) = input.fields(1)
        let body = input.rest(start)
        let head = RequestHead(
            method: .post, origin: OriginAddress(scheme: .http, host: "a.test"), target: input.text(0), fields: fields)
        let found = LocalIDScan.references(head: head, body: body)
        try hold(LocalIDScan.mayOccur(head: head, body: body) == !found.isEmpty, "what may be there is there")
        for reference in found {
            try hold(LocalIDPlace(reference.place.text) == reference.place, "a place is read back: \(reference.place.text)")
            try hold(LocalID(reference.id.text) == reference.id, "an id is read back")
        }
        let ids = Set(found.map(\.id))
        let map = Dictionary(uniqueKeysWithValues: ids.map { ($0, ServerID(text: "17", isNumber: true)) })
        guard let replaced = try? LocalIDSubstitution.apply(head: head, body: body, map: map) else {
            throw BrokenProperty(description: "a plain id can be written anywhere")
        }
        if found.isEmpty {
            return try hold(replaced.head == head && replaced.body == body, "a request without local ids goes as it came")
        }
        if problem(of: body) == nil {
            // If two local ids that are member names get the same server id, the name is duplicated.
            try hold([nil, .duplicateName].contains(problem(of: replaced.body)), "JSON stays JSON")
        }
        do throws(UnmappedLocalIDs) {
            _ = try LocalIDSubstitution.apply(head: head, body: body, map: [:])
            throw UnmappedLocalIDs(ids: [])
        } catch {
            try hold(Set(error.ids) == ids && error.ids.count == ids.count, "every id that has no other is named, once")
        }
    }

    /// The reason why a body is not JSON; nil if it is.
    private static func problem(of body: [UInt8]) -> JSONError.Problem? {
        do throws(JSONError) {
            _ = try JSONValue.parse(body)
            return nil
        } catch { return error.problem }
    }
}
