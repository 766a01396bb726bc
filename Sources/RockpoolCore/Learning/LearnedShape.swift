// A resource that an upstream's traffic has confirmed, with its evidence, and its stored form (docs/outbox.md#learning).

/// What is known of one collection, and why.
package struct LearnedShape: Hashable, Sendable {
    /// The most ids of paths that name no item.
    static let othersLimit = 8

    /// The path, as clients spell it.
    package var collection: String
    package var list: ListShape
    package var ids: IdentifierForm
    /// The template of items.
    package var item: String
    /// The object in an item's body.
    package var envelope: String
    /// The object within that object that writes carry alone; empty where they carry the whole.
    package var content = ""
    /// `etag`, or the pointer of the member that changes with each write.
    package var version = "etag"
    package var updatedAt: String?
    package var profile: Profile?
    /// Ids of paths below the collection that were read and are no items.
    package var others: Set<String> = []
    /// How often it was read as a list, an item was read, and a create has made one.
    package var lists = 0
    package var items = 0
    package var creates = 0
    /// True if a POST was answered with something else than a new item: then none is taken for a create.
    package var hasOtherPosts = false
    /// True if a description of the API has confirmed it.
    private(set) var isDescribed = false
    /// The identity whose traffic has shown it; empty for answers that all share.
    package var owner: String
    /// What the API makes of new entries, by the names of members: as the last create has shown, and links as all entries have them.
    package private(set) var made: [String: MadeMember] = [:]
    /// The links of the entries that were read last; not stored.
    private var links: [String: MadeMember] = [:]
    /// The ids of the entries that were read last; not stored.
    var recent: [String] = []

    package var isCreating: Bool { creates > 0 && !hasOtherPosts }

    /// The name by which it is found.
    var key: String { collection.withoutSlash }

    init(_ candidate: Candidate, item: SeenItem, reading: SeenItem.Reading, template: String, owner: String) {
        (collection, list, self.owner) = (candidate.path, candidate.list.shape, owner)
        ids = candidate.form
        (self.item, envelope, profile) = (template, reading.envelope, item.profile)
        content = reading.content ?? ""
        links = candidate.list.links
        take(made: reading.made)
        lists = candidate.reads
        (items, creates) = item.isCreate ? (0, 1) : (1, 0)
        hasOtherPosts = candidate.hasOtherPosts
        recent = candidate.list.ids
        updatedAt = CommonMembers.pointer(to: CommonMembers.changeTimes, among: reading.members)
        if !item.isCreate { note(members: reading.members, hasETag: item.hasETag) }
    }

    /// A list whose items the API's own description names.
    /// - Parameter described: its collection, at the path of the list.
    init(_ candidate: Candidate, described: APIDescription.Collection, envelope: String, owner: String) {
        (collection, list, self.owner) = (candidate.path, candidate.list.shape, owner)
        (ids, item, self.envelope) = (candidate.form, described.item, envelope)
        profile = candidate.profile
        links = candidate.list.links
        (lists, creates, isDescribed) = (candidate.reads, described.creates ? 1 : 0, true)
        hasOtherPosts = candidate.hasOtherPosts
        (recent, others) = (candidate.list.ids, described.others)
        updatedAt = CommonMembers.pointer(to: CommonMembers.changeTimes, among: candidate.list.members)
    }

    /// Takes what an API has made of a new entry; a link counts if all entries have it in the same form.
    mutating func take(made: [String: MadeMember]) {
        self.made = made.filter { name, form in
            if case .link = form { links[name] == form } else { true }
        }
    }

    /// Takes the links of the entries of a list.
    mutating func take(links: [String: MadeMember]) {
        self.links = links
        take(made: made)
    }

    /// Takes what the answer to a read of an item shows beside its members.
    /// - Returns: true if more is known than before.
    @discardableResult mutating func note(members: Set<String>, hasETag: Bool) -> Bool {
        guard !hasETag, version == "etag", let version = CommonMembers.pointer(to: CommonMembers.versions, among: members) else {
            return false
        }
        self.version = version
        return true
    }

    /// What it is worth to know more, and how it can be known; nil if nothing is missing.
    package var missing: String? {
        if hasOtherPosts { return "a POST was answered with something else than a new entry: none is shown before it is sent" }
        if creates == 0 { return "a create that the API answers: until then a new entry is not shown before it is sent" }
        return items == 0 && !isDescribed ? "a read of one entry: until then its path is a guess" : nil
    }

    /// What has shown it.
    package var reason: String {
        [
            lists.counted("list"), isDescribed ? "the API's description" : nil, items > 0 ? items.counted("entry", "entries") : nil,
            creates > 0 && !isDescribed ? creates.counted("create") : nil,
        ].compactMap(\.self).joined(separator: ", ")
    }

    // MARK: storing

    /// The form in which it is stored.
    var json: JSONValue {
        [
            "collection": .string(collection), "items": .string(list.items), "element": .string(list.element), "id": .string(list.id),
            "ids": .string(ids.rawValue), "item": .string(item), "envelope": .string(envelope), "content": .string(content),
            "version": .string(version),
            "updatedAt": .optional(updatedAt), "profile": .optional(profile?.rawValue),
            "others": .array(others.sorted().map { .string($0) }), "lists": .count(lists), "entries": .count(items),
            "creates": .count(creates), "otherPosts": .bool(hasOtherPosts), "owner": .string(owner),
            "made": .object(storedForms), "described": .bool(isDescribed),
        ]
    }

    private var storedForms: JSONObject {
        JSONObject(made.sorted { $0.key < $1.key }.map { ($0.key, JSONValue.string($0.value.text)) })
    }

    /// Reads the stored form; nil if it is none.
    init?(json: JSONValue) {
        guard let collection = json["collection"]?.string, let item = json["item"]?.string, let items = json["items"]?.string,
            let element = json["element"]?.string, let id = json["id"]?.string, let envelope = json["envelope"]?.string,
            let ids = json["ids"]?.string.flatMap(IdentifierForm.init(rawValue:)), let version = json["version"]?.string,
            let owner = json["owner"]?.string, ItemPlace.plain(collection) != nil,
            [items, element, id, envelope].allSatisfy({ JSONPointer($0) != nil })
        else { return nil }
        (self.collection, self.item, self.ids, self.owner) = (collection, item, ids, owner)
        list = ListShape(items: items, element: element, id: id)
        (self.envelope, self.version) = (envelope, version)
        content = json["content"]?.string.flatMap { JSONPointer($0)?.text } ?? ""
        (updatedAt, profile) = (json["updatedAt"]?.string, json["profile"]?.string.flatMap(Profile.init(rawValue:)))
        others = Set((json["others"]?.array ?? []).prefix(Self.othersLimit).compactMap(\.string))
        (lists, self.items, creates) = (json.count("lists"), json.count("entries"), json.count("creates"))
        for (name, form) in json["made"]?.object ?? JSONObject() { made[name] = form.string.flatMap { MadeMember(text: $0) } }
        (hasOtherPosts, isDescribed) = (json["otherPosts"]?.bool == true, json["described"]?.bool == true)
    }
}

/// A list that was read, whose items are not known yet.
struct Candidate: Hashable, Sendable {
    /// The path, as the client has spelled it.
    var path: String
    /// As it was read last.
    var list: ReadList
    /// The form of all ids that were seen.
    var form: IdentifierForm
    let profile: Profile?
    var reads = 0
    /// How often an item or a create has fitted.
    var confirmations = 0
    var hasOtherPosts = false

    /// Takes the list as it was read once more. Evidence of another shape does not count any more.
    mutating func read(_ list: ReadList) {
        if list.shape != self.list.shape { (reads, confirmations) = (0, 0) }
        form = list.form.map { form.joined(with: $0) } ?? form
        self.list = list
        reads += 1
    }
}

extension CommonMembers {
    /// The pointer of the first known member.
    static func pointer(to candidates: [String], among names: Set<String>) -> String? {
        candidates.first { names.contains($0) }.map { JSONPointer(tokens: [$0]).text }
    }
}

extension JSONValue {
    static func count(_ value: Int) -> JSONValue { .number(JSONNumber(Int64(value))) }

    func count(_ name: String) -> Int { self[name]?.integer.flatMap { Int(exactly: $0) } ?? 0 }
}
