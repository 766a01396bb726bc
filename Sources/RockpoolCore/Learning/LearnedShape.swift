// Resources that traffic has confirmed: their evidence and its stored form, shape by shape, and the members that an API makes
// (docs/outbox.md#learning).

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

    // MARK: - Storing

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

// MARK: - Resources

/// The resources of shapes, and the shapes of each.
struct LearnedResources: Sendable {
    /// One resource with the shapes that it stands for, by their keys.
    struct Entry: Sendable {
        var resource: Resource
        var templates: ResourceTemplates
        var shapes: [String]
    }

    private(set) var entries: [Entry] = []

    /// The resources of shapes. Of two that are alike in their paths and differ in their bodies, each holds for its own path only.
    init(_ shapes: some Sequence<LearnedShape>) {
        // Parents first.
        for shape in shapes.sorted(by: { ($0.depth, $0.collection) < ($1.depth, $1.collection) }) { add(shape) }
        // The one with fewer variables is meant where both match.
        let order = entries.indices.sorted { (entries[$0].variables, $0) < (entries[$1].variables, $1) }
        entries = order.map { entries[$0] }
    }

    /// The resources, the narrower one first.
    var all: [Resource] { entries.map(\.resource) }

    /// The entry and the match of a path; nil if it is of no learned resource.
    func match(_ path: String) -> (index: Int, match: EntityMatch)? {
        let segments = path[...].pathSegments.withoutTrailingSlash
        for (index, entry) in entries.enumerated() {
            if let match = entry.templates.match(segments) { return (index, match) }
        }
        return nil
    }

    private mutating func add(_ shape: LearnedShape) {
        let wide = widened(shape)
        // What is above the list is not known yet: an item's path would tell nothing.
        if shape.isShallow, !wide.isShallow { return }
        if let same = entries.firstIndex(where: { $0.resource.collection.withoutSlash == wide.collection.withoutSlash }) {
            guard entries[same].resource.isLike(wide) else { return insert(shape.resource, of: shape) }
            var resource = entries[same].resource
            resource.learned = resource.learned.map { $0.joined(with: wide.learned ?? LearnedTraits()) }
            entries[same].shapes.append(shape.key)
            entries[same].resource = resource
            entries[same].templates = ResourceTemplates(resource)
        } else {
            insert(wide, of: shape)
        }
    }

    private mutating func insert(_ resource: Resource, of shape: LearnedShape) {
        entries.append(Entry(resource: resource, templates: ResourceTemplates(resource), shapes: [shape.key]))
    }

    /// The resource of a shape, with variables in place of the ids of the items that its path leads through.
    private func widened(_ shape: LearnedShape) -> Resource {
        var resource = shape.resource
        let segments = shape.collection[...].pathSegments.withoutTrailingSlash
        guard segments.count > 1 else { return resource }
        for count in (1..<segments.count).reversed() {
            let (above, prefix) = (Array(segments.prefix(count)), "/" + segments.prefix(count).joined(separator: "/"))
            for entry in entries {
                guard entry.resource.learned != nil, let match = entry.templates.match(above), match.isItem,
                    let item = entry.resource.item?.withoutSlash, item.hasSuffix("/{id}"),
                    shape.isShallow || shape.item.hasPrefix(prefix + "/"),
                    let name = entry.resource.collection.withoutSlash.split(separator: "/").last
                else { continue }
                let letters: Substring = name.filter { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
                guard !letters.isEmpty, !item.contains("{\(letters)_id}") else { continue }
                let parent = String(item.dropLast("{id}".count)) + "{\(letters)_id}"
                resource.collection = parent + resource.collection.dropFirst(prefix.count)
                // A link may name the item above.
                resource.learned?.made = shape.made.filter { if case .time = $0.value { true } else { false } }
                if !shape.isShallow { resource.item = parent + shape.item.dropFirst(prefix.count) }
                return resource
            }
        }
        return resource
    }
}

extension LearnedResources.Entry {
    fileprivate var variables: Int { resource.collection.count(where: { $0 == "{" }) }
}

extension LearnedTraits {
    /// What is known of a resource of two shapes. That one of them makes items is enough for both.
    fileprivate func joined(with other: LearnedTraits) -> LearnedTraits {
        LearnedTraits(
            ids: ids.joined(with: other.ids), others: others.union(other.others), isCreating: isCreating || other.isCreating,
            made: made.merging(other.made) { own, _ in own })
    }
}

extension Resource {
    /// True if bodies of both are read in the same way.
    fileprivate func isLike(_ other: Resource) -> Bool {
        items == other.items && element == other.element && id == other.id && envelope == other.envelope && content == other.content
            && item == other.item && profile == other.profile
    }
}

extension LearnedShape {
    /// True if its items are not below it: `/projects/4/tasks` and `/tasks/{id}`.
    fileprivate var isShallow: Bool { ItemPlace.all(of: item).contains { $0.isShallow(in: key) } }

    fileprivate var depth: Int { collection.count(where: { $0 == "/" }) }

    /// The resource of this path alone.
    fileprivate var resource: Resource {
        var resource = Resource(
            collection: collection, item: item, items: list.items, envelope: envelope, id: list.id, version: version, updatedAt: updatedAt)
        (resource.element, resource.content) = (list.element, content)
        resource.profile = profile
        resource.learned = LearnedTraits(ids: ids, others: others, isCreating: isCreating, made: made)
        return resource
    }
}

// MARK: - Members that an API makes

// What an API's answer to a create shows of the members that the API makes (docs/outbox.md#learning).
extension MadeMember {
    /// The longest text of which a form is taken, in bytes, and the longest time in milliseconds between an answer and a time in it.
    private static let length = 512
    private static let delay: Int64 = 5 * 60 * 1000

    /// The form of a value; nil if it cannot be made again.
    /// - Parameter answeredAt: the time of the answer by the clock of its server.
    init?(_ value: JSONValue, id: String, answeredAt: Timestamp?) {
        guard let text = value.string, text.utf8.count <= Self.length else { return nil }
        if let moment = RFC3339.parse(text) {
            guard let answeredAt, abs(moment.milliseconds - answeredAt.milliseconds) < Self.delay, let time = Self.time(like: text) else {
                return nil
            }
            self = time
        } else if let template = Self.template(of: text, id: id) {
            self = .link(template)
        } else {
            return nil
        }
    }

    private static func time(like text: String) -> MadeMember? {
        let rest = text.dropFirst(19)
        guard text.dropFirst(10).first == "T" else { return nil }
        let digits = rest.first == "." ? rest.dropFirst().prefix { $0.isNumber }.count : 0
        let offset = String(rest.dropFirst(digits == 0 ? 0 : digits + 1))
        return digits <= 9 && seconds(of: offset) != nil ? .time(digits: digits, offset: offset) : nil
    }

    /// The URL with `{id}` in place of the only part of its path or query that is the id; nil for any other text.
    static func template(of text: String, id: String) -> String? {
        guard !text.contains(where: { "{} ".contains($0) }), !id.isEmpty, text.utf8.count <= length else { return nil }
        let start: String.Index
        if text.hasPrefix("/"), !text.hasPrefix("//") {
            start = text.startIndex
        } else {
            guard text.hasPrefix("http://") || text.hasPrefix("https://"), let authority = text.firstRange(of: "://")?.upperBound,
                let path = text[authority...].firstIndex(of: "/")
            else { return nil }
            start = path
        }
        let written = ServerID(text: id).percentEncoded
        let found = text[start...].ranges(of: written).filter { range in
            guard range.lowerBound > start, "/=".contains(text[text.index(before: range.lowerBound)]) else { return false }
            return range.upperBound == text.endIndex || "/?#&.".contains(text[range.upperBound])
        }
        guard found.count == 1 else { return nil }
        var template = text
        template.replaceSubrange(found[0], with: "{id}")
        return template
    }

    /// What an API has made of an entity, by the names of members that its create had not sent.
    static func all(in object: JSONObject, written: Set<String>, id: String, answeredAt: Timestamp?) -> [String: MadeMember] {
        guard !written.isEmpty else { return [:] }
        let made = object.prefix(ReadList.memberLimit).filter { !written.contains($0.name) && $0.name.utf8.count <= ReadList.nameLength }
        return made.reduce(into: [:]) { all, member in
            all[member.name] = MadeMember(member.value, id: id, answeredAt: answeredAt)
        }
    }
}
