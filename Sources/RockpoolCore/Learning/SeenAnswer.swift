// An answer from which something may be learned, and the entity in it (docs/outbox.md#learning).
import HTTPTypes

/// The answer of an upstream to a read, or to a write that may have made an item.
package struct SeenAnswer: Sendable {
    /// True for the answer to a POST.
    let isCreate: Bool
    /// The path, in the spelling that all equivalent ones share.
    let path: String
    /// True if the request had a query.
    let hasQuery: Bool
    /// The identity whose answer it is; empty for one that all share.
    let owner: String
    /// nil where the answer has no body of JSON.
    let body: JSONValue?
    let profile: Profile?
    let hasETag: Bool
    /// The members of the object that a create has sent; empty for a read, and where it has sent none.
    private(set) var written: Set<String> = []
    /// The time of the answer by the clock of its server; nil if it does not say it.
    let answeredAt: Timestamp?
    /// The path of what was made, as the answer names it.
    let location: String?

    /// The answer to a GET that was stored. nil if nothing can be learned of it.
    /// - Parameter owner: the name of the partition in which it is stored.
    package init?(target: String, answer: ResponseHead, body: JSONValue, owner: String) {
        let path = target.prefix { $0 != "?" }
        guard answer.status == 200, MediaType.isJSON(answer.fields), let plain = ItemPlace.plain(String(path)) else { return nil }
        self.init(
            isCreate: false, path: plain, hasQuery: path.endIndex < target.endIndex, owner: owner, body: body, answer: answer, location: nil
        )
    }

    /// The answer to a POST that took effect. nil for any other write, and for an answer that may not be stored.
    /// - Parameter owner: the name of the identity's partition.
    package init?(_ write: AnsweredWrite, owner: String) {
        guard write.request.method == .post, write.evidence == .answer, write.outcome == .applied,
            !CacheControl(write.answer.fields).noStore,
            !CacheControl(request: write.request.fields).noStore, let plain = ItemPlace.plain(write.request.path)
        else { return nil }
        let named = write.answer.fields.single(.location).flatMap {
            URIReference.resolve($0, origin: write.request.origin, target: write.request.target)
        }
        let location = named?.dropFirst(write.request.origin.url.count).prefix { $0 != "?" }
        // Other statuses name what the write has begun, or carry nothing.
        let makes = [200, 201].contains(write.answer.status)
        self.init(
            isCreate: true, path: plain, hasQuery: write.request.query != nil, owner: owner,
            body: makes && MediaType.isJSON(write.answer.fields) ? write.answerJSON : nil, answer: write.answer,
            location: makes ? location.flatMap { ItemPlace.plain(String($0)) } : nil)
        if makes, let sent = write.body, let object = (try? JSONValue.parse(sent))?.object { written = ReadList.members(of: object) }
    }

    private init(
        isCreate: Bool, path: String, hasQuery: Bool, owner: String, body: JSONValue?, answer: ResponseHead, location: String?
    ) {
        (self.isCreate, self.path, self.hasQuery, self.owner, self.body) = (isCreate, path, hasQuery, owner, body)
        answeredAt = answer.fields.single(.date).flatMap { HTTPDate.parse($0) }
        (profile, hasETag, self.location) = (Profile(of: answer.fields), answer.fields.contains(.eTag), location)
    }
}

extension Profile {
    /// The format that the media type names; nil for JSON of no known format.
    init?(of fields: HTTPFields) {
        guard let essence = MediaType.essence(of: fields) else { return nil }
        if essence == "application/json" {
            guard fields.value(of: "content-type")?.contains("odata.") == true else { return nil }
            self = .odata
        } else {
            guard let profile = Self.allCases.first(where: { $0.mediaType == essence }) else { return nil }
            self = profile
        }
    }
}

/// An object that was read, or that a create has made, before it is known whose item it is.
struct SeenItem: Hashable, Sendable {
    /// The most objects of a body that may be its entity.
    private static let readingLimit = 4

    /// One object of the body that has an id.
    struct Reading: Hashable, Sendable {
        /// The pointer to it.
        let envelope: String
        /// The ids that it has, by their pointers.
        let ids: [String: String]
        let members: Set<String>
        /// The pointer, within the object, to the one object with all members that a create has sent, which the object itself has not.
        let content: String?
        /// What the API has made of the object, beside what a create has sent.
        let made: [String: MadeMember]
    }

    let isCreate: Bool
    let path: String
    /// The ways to read the path of the item; empty for a create whose answer does not name it.
    let places: [ItemPlace]
    let readings: [Reading]
    let hasETag: Bool
    let profile: Profile?

    /// The entity of an answer; nil if it shows none.
    init?(_ seen: SeenAnswer) {
        guard let body = seen.body, body.object != nil else { return nil }
        let inner = body.object?.prefix(ReadList.memberLimit).map { JSONPointer(tokens: [$0.name]) } ?? []
        let readings = ([JSONPointer(tokens: [])] + inner).lazy.compactMap { Self.reading(of: body, at: $0, seen) }
        self.readings = Array(readings.prefix(Self.readingLimit))
        guard !self.readings.isEmpty else { return nil }
        (isCreate, path, hasETag, profile) = (seen.isCreate, seen.path, seen.hasETag, seen.profile)
        places = seen.isCreate ? seen.location.map(ItemPlace.all) ?? [] : ItemPlace.all(of: seen.path)
    }

    private static func reading(of body: JSONValue, at place: JSONPointer, _ seen: SeenAnswer) -> Reading? {
        guard let value = place.get(in: body), let object = value.object else { return nil }
        let ids = CommonMembers.ids.compactMap { name in
            object[name]?.entityID.map { (JSONPointer(tokens: [name]).text, $0) }
        }
        guard !ids.isEmpty else { return nil }
        return Reading(
            envelope: place.text, ids: Dictionary(ids) { first, _ in first }, members: ReadList.members(of: object),
            content: content(of: object, written: seen.written),
            made: MadeMember.all(in: object, written: seen.written, id: ids[0].1, answeredAt: seen.answeredAt))
    }

    /// The pointer to the only member that has all of what a create has sent; nil if the object itself has some of it.
    static func content(of object: JSONObject, written: Set<String>) -> String? {
        guard !written.isEmpty, written.allSatisfy({ object[$0] == nil }) else { return nil }
        let found = object.prefix(ReadList.memberLimit).filter { _, value in
            value.object.map { inner in written.allSatisfy { inner[$0] != nil } } ?? false
        }
        return found.count == 1 ? found.first.map { JSONPointer(tokens: [$0.name]).text } : nil
    }

    /// The object with this id that has the members of a list's entries: at least half of them.
    func reading(like list: ReadList, id: String?) -> Reading? {
        readings.first { reading in
            guard let own = reading.ids[list.shape.id], id == nil || own == id else { return false }
            return list.members.intersection(reading.members).count * 2 >= list.members.count
        }
    }
}
