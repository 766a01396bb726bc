// Learns the resources of an upstream from its traffic: evidence is counted for each identity alone, and a shape counts when an item or a create
// has confirmed it (docs/outbox.md#learning).
import OrderedCollections

/// What is known, and what was seen, of one upstream.
package struct ResourceLearner: Sendable {
    /// The most shapes, the most identities of which evidence is kept, and the most lists and items of each.
    package static let shapeLimit = 128
    static let ownerLimit = 16
    static let listLimit = 64
    static let itemLimit = 32
    /// The most withdrawn shapes, and paths of answers that may not be stored, that are remembered.
    static let memoryLimit = 64
    /// A shape that was withdrawn so often is not learned again.
    static let withdrawalLimit = 3

    /// Something that is known now, or no longer.
    package enum Change: Hashable, Sendable {
        /// A shape was confirmed.
        case learned(String)
        /// More is known of a shape.
        case extended(String)
        /// A shape is not used any more.
        case withdrawn(String, because: String)
    }

    /// A shape that was withdrawn.
    package struct Withdrawal: Hashable, Sendable {
        package var count: Int
        package var reason: String
    }

    /// What one identity was shown and is not known yet.
    fileprivate struct Evidence: Sendable {
        /// By the path without a slash at its end; the newest last.
        var lists: OrderedDictionary<String, Candidate> = [:]
        /// The newest last.
        var items: [SeenItem] = []
    }

    /// What is known, by the path without a slash at its end.
    private(set) var shapes: OrderedDictionary<String, LearnedShape> = [:]
    /// What is not used any more.
    private(set) var withdrawn: OrderedDictionary<String, Withdrawal> = [:]
    /// Paths whose answers may not be stored.
    private(set) var unstored: OrderedSet<String> = []
    /// The identity that was seen last is the last.
    private var evidence: OrderedDictionary<String, Evidence> = [:]
    /// What descriptions of the API say, by the identity that has read them; the newest last.
    private var descriptions: OrderedDictionary<String, APIDescription> = [:]
    private var learned = LearnedResources([LearnedShape]())
    /// What PUTs have shown, with the first identity that was answered, by the label of the resource.
    private var omitted: OrderedDictionary<String, (members: OmittedMembers, owner: String)> = [:]

    package init() {}

    /// The resources, the narrower one first.
    package var resources: [Resource] { learned.all }

    /// What routes use.
    package var shown: LearnedUpstream {
        LearnedUpstream(resources: resources, omitted: Dictionary(omitted.map { ($0.key, $0.value.members) }) { first, _ in first })
    }

    /// The resources with the shapes that each stands for.
    var entries: [(resource: Resource, shapes: [LearnedShape])] {
        learned.entries.map { entry in (entry.resource, entry.shapes.compactMap { shapes[$0] }) }
    }

    /// The lists of which it is not known yet how their items are read, each path once, with the number of times it was read.
    package var open: [(path: String, reads: Int)] {
        var counts: OrderedDictionary<String, Int> = [:]
        for known in evidence.values { for candidate in known.lists.values { counts[candidate.path, default: 0] += candidate.reads } }
        return counts.map { ($0.key, $0.value) }
    }

    /// True if the answer to a POST to this path may show something.
    package func awaitsCreate(at path: String) -> Bool {
        guard let plain = ItemPlace.plain(path) else { return false }
        if let found = learned.match(plain) { return !found.match.isItem }
        return evidence.values.contains { $0.lists[plain.withoutSlash] != nil }
    }

    // MARK: - Evidence

    /// Takes an answer of the upstream.
    package mutating func note(_ seen: SeenAnswer) -> [Change] {
        unstored.remove(seen.path)
        if let (index, match) = learned.match(seen.path) {
            if seen.isCreate { return match.isItem ? [] : noteCreate(seen, index) }
            return match.isItem ? noteItem(seen, index, id: match.id ?? "") : noteList(seen, index)
        }
        makeRoom(for: seen.owner)
        return seen.isCreate ? noteNewCreate(seen) : noteNewRead(seen)
    }

    /// Takes the path of an answer that may not be stored.
    package mutating func noteUnstored(_ target: String) -> Bool {
        guard let plain = ItemPlace.plain(String(target.prefix { $0 != "?" })), unstored.count < Self.memoryLimit else { return false }
        return unstored.append(plain).inserted
    }

    private mutating func makeRoom(for owner: String) {
        let known = evidence.removeValue(forKey: owner) ?? Evidence()
        if evidence.count >= Self.ownerLimit { evidence.removeFirst() }
        evidence[owner] = known
    }

    private mutating func noteNewRead(_ seen: SeenAnswer) -> [Change] {
        guard let body = seen.body else { return [] }
        let key = seen.path.withoutSlash
        let described = described(at: seen.path, to: seen.owner)?.collection
        // Only a description can tell that an empty array is a list, and of what.
        let list = described?.shape.flatMap { ReadList(body, as: $0) } ?? ReadList(in: body, profile: seen.profile)
        guard let list, let form = list.form ?? described?.ids else {
            guard let item = SeenItem(seen) else { return [] }
            return confirm(with: item, among: item.places.map(\.collection) + shallowLists(of: item), by: seen.owner)
        }
        guard withdrawn[key]?.count ?? 0 < Self.withdrawalLimit, shapes[key] == nil else { return [] }
        var candidate =
            evidence[seen.owner]?.lists.removeValue(forKey: key)
            ?? Candidate(path: seen.path, list: list, form: form, profile: seen.profile)
        candidate.read(list)
        evidence[seen.owner]?.addList(candidate, key: key)
        for owner in owners(beside: seen.owner) {
            for item in evidence[owner]?.items ?? [] {
                let changes = confirm(key, of: seen.owner, with: item, by: owner)
                if !changes.isEmpty { return changes }
            }
        }
        return confirmDescribed(key, of: seen.owner)
    }

    // MARK: - Descriptions

    /// Takes what a description of the API says, in place of an earlier one.
    /// - Parameter owner: the identity that has read it; that of answers that all share for one that the operator has named.
    package mutating func note(_ description: APIDescription, owner: String) -> [Change] {
        descriptions[owner] = nil
        if descriptions.count >= Self.ownerLimit { descriptions.removeFirst() }
        descriptions[owner] = description
        return owners(beside: owner).flatMap { holder in
            Array(evidence[holder]?.lists.keys ?? []).flatMap { confirmDescribed($0, of: holder) }
        }
    }

    /// True if this is what the last description that an identity has read says.
    package func knows(_ description: APIDescription, owner: String) -> Bool { descriptions[owner] == description }

    /// What descriptions say of a path to an identity, and who has read it; nil for a shape that was withdrawn: it needs traffic.
    private func described(at path: String, to holder: String) -> (reader: String, collection: APIDescription.Collection)? {
        guard !descriptions.isEmpty, withdrawn[path.withoutSlash] == nil else { return nil }
        let readers = holder == StoragePartition.shared.name ? Array(descriptions.keys) : [holder, StoragePartition.shared.name]
        return readers.lazy.compactMap { reader in descriptions[reader]?.collection(at: path).map { (reader, $0) } }.first
    }

    /// Makes a list a shape if a description names its items.
    private mutating func confirmDescribed(_ key: String, of holder: String) -> [Change] {
        guard let candidate = evidence[holder]?.lists[key], shapes.count < Self.shapeLimit,
            let described = described(at: candidate.path, to: holder), described.collection.fits(candidate.list.shape),
            let envelope = described.collection.envelope
        else { return [] }
        for name in evidence.keys { evidence[name]?.forget(key) }
        let shower = holder == StoragePartition.shared.name ? described.reader : holder
        shapes[key] = LearnedShape(candidate, described: described.collection, envelope: envelope, owner: shower)
        learned = LearnedResources(shapes.values)
        return [.learned(candidate.path)]
    }

    // MARK: - Items and creates

    /// The lists that an item may be of whose path does not tell its list; none where the path above it is a list itself.
    private func shallowLists(of item: SeenItem) -> [String] {
        let places = item.places.filter { place in
            shapes[place.collection] == nil && !evidence.values.contains { $0.lists[place.collection] != nil }
        }
        let keys = Set(evidence.values.flatMap { known in known.lists.keys.filter { key in places.contains { $0.isShallow(in: key) } } })
        return keys.sorted()
    }

    /// The identities whose answers are seen together: its own, and those that all share.
    private func owners(beside owner: String) -> [String] {
        let shared = StoragePartition.shared.name
        return owner == shared ? Array(evidence.keys) : [owner, shared]
    }

    private mutating func noteNewCreate(_ seen: SeenAnswer) -> [Change] {
        guard let item = SeenItem(seen) else {
            guard seen.location == nil else { return [] }
            for owner in owners(beside: seen.owner) { evidence[owner]?.lists[seen.path.withoutSlash]?.hasOtherPosts = true }
            return []
        }
        return confirm(with: item, among: [seen.path.withoutSlash], by: seen.owner)
    }

    /// Compares an item with the lists that it may be of, and remembers it if it is of none.
    private mutating func confirm(with item: SeenItem, among keys: [String], by owner: String) -> [Change] {
        for key in keys {
            for holder in owners(beside: owner) {
                let changes = confirm(key, of: holder, with: item, by: owner)
                if !changes.isEmpty { return changes }
            }
        }
        evidence[owner]?.addItem(item)
        return []
    }

    /// Counts an item for a list if it is one of it. A shape that was withdrawn needs more of them.
    private mutating func confirm(_ key: String, of holder: String, with item: SeenItem, by owner: String) -> [Change] {
        guard var candidate = evidence[holder]?.lists[key], let (reading, template) = Self.fit(item, candidate, key: key) else { return [] }
        candidate.confirmations += 1
        evidence[holder]?.lists[key] = candidate
        guard candidate.confirmations > 2 * (withdrawn[key]?.count ?? 0), shapes.count < Self.shapeLimit,
            !candidate.hasOtherPosts || !item.isCreate
        else { return [] }
        for name in evidence.keys { evidence[name]?.forget(key) }
        let shower = holder == StoragePartition.shared.name ? owner : holder
        shapes[key] = LearnedShape(candidate, item: item, reading: reading, template: template, owner: shower)
        learned = LearnedResources(shapes.values)
        return [.learned(candidate.path)]
    }

    /// The object of an item and the template of its path, if it is of a list: an entry that was listed, or what a POST to it has made.
    private static func fit(_ item: SeenItem, _ candidate: Candidate, key: String) -> (SeenItem.Reading, template: String)? {
        // An empty list shows nothing that an item could have.
        guard item.profile == candidate.profile, !candidate.list.ids.isEmpty else { return nil }
        guard item.isCreate else {
            for place in item.places where (place.collection == key || place.isShallow(in: key)) && candidate.list.ids.contains(place.id) {
                if let reading = item.reading(like: candidate.list, id: place.id) { return (reading, place.item) }
            }
            return nil
        }
        guard item.path.withoutSlash == key, let reading = item.reading(like: candidate.list, id: nil),
            let id = reading.ids[candidate.list.shape.id]
        else { return nil }
        guard !item.places.isEmpty else { return (reading, ItemPlace.usual(in: candidate.path)) }
        guard let place = item.places.first(where: { ($0.collection == key || $0.isShallow(in: key)) && $0.id == id }) else { return nil }
        return (reading, place.item)
    }

    // MARK: - What is known

    private mutating func noteList(_ seen: SeenAnswer, _ index: Int) -> [Change] {
        let resource = learned.entries[index].resource
        let shape = ListShape(items: resource.items, element: resource.element, id: resource.id)
        guard let body = seen.body, let list = ReadList(body, as: shape) else {
            // A query may ask for something else than entries, and a client for another format.
            return seen.hasQuery || seen.profile != resource.profile
                ? [] : withdraw(index, because: "GET \(seen.path) was answered with something else than a list")
        }
        return change(index) {
            $0.lists += 1
            let made = $0.made
            if !list.ids.isEmpty {
                $0.recent = list.ids
                $0.take(links: list.links)
            }
            guard let form = list.form, form.joined(with: $0.ids) != $0.ids else { return $0.made != made }
            $0.ids = form.joined(with: $0.ids)
            return true
        }
    }

    private mutating func noteItem(_ seen: SeenAnswer, _ index: Int, id: String) -> [Change] {
        let resource = learned.entries[index].resource
        guard seen.profile == resource.profile else { return [] }
        let object = seen.body.flatMap { JSONPointer(resource.envelope)?.get(in: $0) }
        if let object, let members = object.object, JSONPointer(resource.id)?.get(in: object)?.entityID == id {
            return change(index) {
                $0.items += 1
                return $0.note(members: ReadList.members(of: members), hasETag: seen.hasETag)
            }
        }
        let shapes = learned.entries[index].shapes.compactMap { self.shapes[$0] }
        let isListed = resource.learned?.ids != .text || shapes.contains { $0.recent.contains(id) }
        guard !isListed, shapes.allSatisfy({ $0.others.count < LearnedShape.othersLimit }) else {
            return withdraw(index, because: "GET \(seen.path) was answered with something else than this entry")
        }
        return change(index) { $0.others.insert(id).inserted }
    }

    private mutating func noteCreate(_ seen: SeenAnswer, _ index: Int) -> [Change] {
        let (resource, templates) = (learned.entries[index].resource, learned.entries[index].templates)
        let object = seen.body.flatMap { JSONPointer(resource.envelope)?.get(in: $0) }
        let id = object.flatMap { JSONPointer(resource.id)?.get(in: $0)?.entityID }
        let content = object?.object.flatMap { SeenItem.content(of: $0, written: seen.written) }
        let made = object?.object.flatMap { object in
            id.map { MadeMember.all(in: object, written: seen.written, id: $0, answeredAt: seen.answeredAt) }
        }
        let place = seen.location.flatMap { templates.match(target: $0) }
        let makes = id != nil || seen.body == nil && place?.isItem == true
        // One POST that makes nothing speaks for all paths of the resource.
        return change(index, everywhere: !makes) {
            let before = $0.isCreating
            if makes { $0.creates += 1 } else { $0.hasOtherPosts = true }
            let known = ($0.content, $0.made)
            if let content { $0.content = content }
            if let made, makes, !seen.written.isEmpty { $0.take(made: made) }
            return $0.isCreating != before || ($0.content, $0.made) != known
        }
    }

    /// Changes the first shape of a resource, or all of them.
    /// - Parameter change: returns true if something else is known than before.
    private mutating func change(_ index: Int, everywhere: Bool = false, _ change: (inout LearnedShape) -> Bool) -> [Change] {
        var changes: [Change] = []
        for key in learned.entries[index].shapes.prefix(everywhere ? .max : 1) {
            guard var shape = shapes[key] else { continue }
            if change(&shape) { changes.append(.extended(shape.collection)) }
            shapes[key] = shape
        }
        if !changes.isEmpty { learned = LearnedResources(shapes.values) }
        return changes
    }

    /// Takes what a PUT has shown of the members that it has left out.
    /// - Parameter label: that of the resource, which may be a declared one.
    /// - Returns: true if something else is known than before.
    package mutating func note(_ shown: OmittedMembers, at label: String, owner: String) -> Bool {
        guard omitted[label] != nil || omitted.count < Self.shapeLimit else { return false }
        return omitted[label, default: (OmittedMembers(), owner)].members.take(shown)
    }

    private mutating func withdraw(_ index: Int, because reason: String) -> [Change] {
        let keys = learned.entries[index].shapes
        let changes = keys.compactMap { key -> Change? in
            guard let shape = shapes.removeValue(forKey: key) else { return nil }
            let count = withdrawn.removeValue(forKey: key)?.count ?? 0
            if withdrawn.count >= Self.memoryLimit { withdrawn.removeFirst() }
            withdrawn[key] = Withdrawal(count: count + 1, reason: reason)
            return .withdrawn(shape.collection, because: reason)
        }
        learned = LearnedResources(shapes.values)
        return changes
    }

    // MARK: - Forgetting

    /// Forgets what is known and what was seen of one collection, or of all.
    /// - Returns: the number of shapes that were known.
    package mutating func forget(_ collection: String? = nil) -> Int {
        let before = shapes.count
        guard let collection else {
            self = ResourceLearner()
            return before
        }
        let key = collection.withoutSlash
        for resource in resources where resource.collection.withoutSlash == key { omitted[resource.label] = nil }
        shapes[key] = nil
        withdrawn[key] = nil
        unstored.remove(collection)
        for owner in evidence.keys { evidence[owner]?.forget(key) }
        learned = LearnedResources(shapes.values)
        return before - shapes.count
    }

    /// Forgets what only one identity has shown.
    /// - Returns: true if something was known.
    package mutating func forget(owner: String) -> Bool {
        evidence[owner] = nil
        descriptions[owner] = nil
        let before = shapes.count + omitted.count
        shapes.removeAll(where: { $0.value.owner == owner })
        omitted.removeAll(where: { $0.value.owner == owner })
        learned = LearnedResources(shapes.values)
        return shapes.count + omitted.count != before
    }

    // MARK: - Storing

    /// True if nothing is to be kept over restarts.
    package var isEmpty: Bool { shapes.isEmpty && withdrawn.isEmpty && descriptions.isEmpty && omitted.isEmpty }

    /// What is kept over restarts: shapes, what was withdrawn, descriptions, and what PUTs have shown.
    package var json: JSONValue {
        [
            "shapes": .array(shapes.values.map(\.json)),
            "descriptions": .array(descriptions.map { ["owner": .string($0.key), "collections": $0.value.json] }),
            "puts": .array(
                omitted.map { ["resource": .string($0.key), "owner": .string($0.value.owner), "omitted": $0.value.members.json] }),
            "withdrawn": .array(
                withdrawn.map { ["collection": .string($0.key), "count": .count($0.value.count), "reason": .string($0.value.reason)] }),
        ]
    }

    /// Reads what was kept; what cannot be read is left out.
    package init(json: JSONValue) {
        for shape in (json["shapes"]?.array ?? []).prefix(Self.shapeLimit).compactMap({ LearnedShape(json: $0) }) {
            shapes[shape.key] = shape
        }
        for one in (json["withdrawn"]?.array ?? []).prefix(Self.memoryLimit) {
            guard let collection = one["collection"]?.string, let reason = one["reason"]?.string else { continue }
            withdrawn[collection] = Withdrawal(count: max(1, one.count("count")), reason: reason)
        }
        for one in (json["descriptions"]?.array ?? []).prefix(Self.ownerLimit) {
            guard let owner = one["owner"]?.string else { continue }
            descriptions[owner] = one["collections"].flatMap { APIDescription(json: $0) }
        }
        for one in (json["puts"]?.array ?? []).prefix(Self.shapeLimit) {
            guard let label = one["resource"]?.string, let owner = one["owner"]?.string, let known = one["omitted"] else { continue }
            omitted[label] = (OmittedMembers(json: known), owner)
        }
        learned = LearnedResources(shapes.values)
    }
}

extension ResourceLearner.Evidence {
    fileprivate mutating func addList(_ list: Candidate, key: String) {
        if lists.count >= ResourceLearner.listLimit { lists.removeFirst() }
        lists[key] = list
    }

    /// Forgets a list, and what may be of it.
    fileprivate mutating func forget(_ key: String) {
        lists[key] = nil
        items.removeAll { $0.isCreate ? $0.path.withoutSlash == key : $0.places.contains { $0.collection == key } }
    }

    fileprivate mutating func addItem(_ item: SeenItem) {
        items.removeAll { $0.path == item.path && $0.isCreate == item.isCreate }
        if items.count >= ResourceLearner.itemLimit { items.removeFirst() }
        items.append(item)
    }
}

// MARK: - Report

/// One line of the report.
package struct LearnedReport: Hashable, Sendable {
    /// How far learning has come.
    package enum State: String, CaseIterable, Sendable {
        /// It is used.
        case learned
        /// A list was read; its items are not known.
        case open
        /// It was used, and an answer has contradicted it.
        case withdrawn
        /// Its answers may not be stored.
        case unstored
    }

    package var state: State
    /// The path of the collection, with variables; that of the answer where nothing else is known.
    package var path: String
    /// nil unless it is learned.
    package var resource: Resource?
    /// What has shown it, or what has contradicted it.
    package var reason: String
    /// What is missing to know more, and what to do about it; nil if nothing is.
    package var missing: String?
}

extension ResourceLearner {
    /// The report: what is used, then what may be, then what is not.
    package var report: [LearnedReport] {
        let used = entries.map { resource, shapes in
            LearnedReport(
                state: .learned, path: resource.collection, resource: resource, reason: Self.reason(shapes),
                missing: shapes.contains(where: \.hasOtherPosts) ? shapes.first(where: \.hasOtherPosts)?.missing : Self.least(shapes))
        }
        let seen = open.map { path, reads in
            LearnedReport(
                state: .open, path: path, reason: reads.counted("list"),
                missing: "a read of one of its entries, or a create that the API answers")
        }
        let gone = withdrawn.map { path, withdrawal in
            LearnedReport(
                state: .withdrawn, path: path, reason: withdrawal.reason,
                missing: withdrawal.count < Self.withdrawalLimit ? nil : "nothing more is learned of it; declare it under resources")
        }
        // What is below a path of the report is kept with it.
        let unread = unstored.filter { path in !unstored.contains { path.hasPrefix($0.withoutSlash + "/") && path != $0 } }.map { path in
            let isAlone = !unstored.contains { $0.hasPrefix(path.withoutSlash + "/") && $0 != path }
            return LearnedReport(
                state: .unstored, path: path, reason: "the API says no-store",
                missing: "the consent to keep it, under routes: { match: \"\(isAlone ? path : path.withoutSlash + "/**")\", store: always }"
            )
        }
        return used + seen + gone + unread
    }

    private static func reason(_ shapes: [LearnedShape]) -> String {
        guard var all = shapes.first else { return "" }
        for shape in shapes.dropFirst() {
            all.lists += shape.lists
            all.items += shape.items
            all.creates += shape.creates
        }
        return all.reason
    }

    /// What the shape lacks of which most is known.
    private static func least(_ shapes: [LearnedShape]) -> String? {
        shapes.contains { $0.missing == nil } ? nil : shapes.max { ($0.creates, $0.items) < ($1.creates, $1.items) }?.missing
    }
}
