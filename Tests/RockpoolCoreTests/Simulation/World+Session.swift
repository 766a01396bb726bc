// One client and its session guarantees: random GET, PUT, PATCH, POST, DELETE and actions while the line is up, down or flapping, answers
// are lost and the process restarts (docs/outbox.md#session-guarantees). Nobody else writes, and the upstream honours keys and ETags.
import HTTPTypes
import RockpoolCore

/// The client's own view, and the copies that its proxy holds.
struct Session {
    /// The state of an entity or of the list as fetched, or as an own write left it.
    struct Copy {
        /// Nil where the upstream has none.
        var body: JSONValue?
        var at: Timestamp
        var tag: String?
    }

    /// The members of each live note without its id, by the path that the client uses.
    var view: [String: JSONValue] = [:]
    var gone: Set<String> = []
    /// The paths of notes of which a live write ended with the process: the client reads them before it goes on.
    var doubtful: Set<String> = []
    /// The paths that were read since their last change, for the name of a broken guarantee.
    var wasRead: Set<String> = []
    var copies: [String: Copy] = [:]
    var list = Copy(body: .array([]), at: noon)
    /// The delivered operations that are worked into the copies.
    var worked: Set<Int64> = []
    /// The numbers of reads compared, of lists compared, of live writes and of writes that were queued.
    var (reads, lists, live, queued) = (0, 0, 0, 0)

    static let resource = Resource(collection: "/notes", item: "/notes/{id}", version: "etag")

    static func members(_ body: JSONValue) -> JSONValue {
        var members = body
        members["id"] = nil
        return members
    }
}

extension World {
    private var line: String { "api" }
    /// True if a request would reach the upstream now.
    private var isUp: Bool { weather[line] == .fine && process?.isReachable[line] == true }

    /// The client has read everything before the run begins.
    mutating func beginSession() {
        for (path, entity) in upstreams[line]?.entities ?? [:] {
            ghost.session.view[path] = Session.members(entity.body)
            ghost.session.copies[path] = Session.Copy(body: entity.body, at: now, tag: upstreams[line]?.tag(path))
        }
        ghost.session.list = Session.Copy(body: serverList, at: now)
    }

    private var serverList: JSONValue { .array((upstreams[line]?.entities ?? [:]).sorted { $0.key < $1.key }.map(\.value.body)) }

    /// The client's next request; it makes one after the other.
    mutating func converse(left: Int) {
        guard left > 0, !isHealed else { return }
        guard process != nil else { return later(.seconds(1), "client") { $0.converse(left: left) } }
        showCredential(of: 0, isFresh: true)
        if isUp {
            for path in ghost.session.doubtful { settleDoubt(path) }
        }
        let session = ghost.session
        let next: Agenda.Step = { world in
            world.later(world.random.milliseconds(1...4_000), "client") { $0.converse(left: left - 1) }
        }
        let known = session.view.keys.filter { !session.doubtful.contains($0) }.sorted()
        switch random.number(0...9) {
        case 0...3:
            let paths = (known + session.gone.sorted()).filter { !session.doubtful.contains($0) }
            paths.isEmpty ? next(&self) : readNote(random.pick(paths), then: next)
        case 4: session.doubtful.isEmpty ? readList(then: next) : next(&self)
        case 5: writeNote(.post, "/notes", then: next)
        default:
            guard !known.isEmpty else { return next(&self) }
            let kind = random.number(0...9)
            let path = random.pick(known)
            writeNote(kind < 4 ? .put : kind < 8 ? .patch : kind < 9 ? .delete : .post, path, then: next)
        }
    }

    /// Without the proxy, too, a client whose connection broke reads before it goes on.
    mutating func settleDoubt(_ path: String) {
        ghost.session.doubtful.remove(path)
        let body = upstreams[line]?.entities[serverPath(path)]?.body
        ghost.session.copies[path] = Session.Copy(body: body, at: now, tag: upstreams[line]?.tag(serverPath(path)))
        ghost.session.view[path] = body.map(Session.members)
        if body == nil { ghost.session.gone.insert(path) }
        ghost.session.list = Session.Copy(body: serverList, at: now)
    }

    // MARK: reads

    private mutating func readNote(_ path: String, then next: @escaping Agenda.Step) {
        guard isUp, random.chance(0.7), !serverPath(path).contains("loc_") else {
            compare(path, with: ghost.session.copies[path])
            return next(&self)
        }
        let asked = now
        later(random.milliseconds(1...100), "fetch") { world in
            let real = world.serverPath(path)
            let copy = Session.Copy(
                body: world.upstreams[world.line]?.entities[real]?.body, at: asked, tag: world.upstreams[world.line]?.tag(real))
            world.later(world.random.milliseconds(1...100), "read") { world in
                guard world.process != nil else { return next(&world) }
                // A response that was requested before an own write was answered does not replace its result.
                if world.ghost.session.copies[path].map({ $0.at <= asked }) ?? true { world.ghost.session.copies[path] = copy }
                world.compare(path, with: copy)
                next(&world)
            }
        }
    }

    private func rows(since at: Timestamp?, where isOne: (QueuedWrite) -> Bool) -> [QueuedWrite] {
        guard plan.sabotage != .readsWithoutOverlay else { return [] }
        return disk.rows.map(\.operation).filter { row in
            guard isOne(row) else { return false }
            switch row.state {
            case .pending, .inflight, .uncertain, .conflicted, .parked: return true
            case .delivered: return row.endedAt.map { ended in at.map { $0 <= ended } ?? true } ?? true
            case .dead, .cancelled, .superseded: return false
            }
        }.sorted { $0.place < $1.place }
    }

    func folded(_ row: QueuedWrite, answer: JSONValue? = nil) -> FoldedWrite {
        let isCreate = row.localID != nil
        let id = isCreate ? row.localID?.text : row.lane.split(separator: "/").last.map(String.init)
        let mapped = id.flatMap { LocalID($0) }.flatMap { disk.mappings[$0] }
        let target = row.request.target
        return FoldedWrite(
            sequence: row.sequence, method: row.request.method, isItem: !isCreate, id: mapped?.id.text ?? id,
            idIsNumber: mapped?.id.isNumber ?? (Int64(id ?? "") != nil), contentType: row.request.fields[.contentType],
            body: row.body.bytes,
            action: target.hasSuffix("/touch") ? "touch" : nil, answer: answer, isDelivered: row.state == .delivered)
    }

    /// Compares what a read shows with the client's own view.
    private mutating func compare(_ path: String, with copy: Session.Copy?) {
        let lane = "\(line) \(path)"
        let writes = rows(since: copy?.at) { $0.lane == lane }.map { folded($0) }
        let seen: JSONValue?
        switch ItemFold.fold(copy?.body, with: writes, resource: Session.resource) {
        case .unchanged: seen = copy?.body
        case .present(let body, _, _), .dirty(.some(let body), _, _): seen = body
        case .deleted: seen = nil
        // Marked as `Rockpool-Dirty: 1`.
        case .dirty(nil, _, _): return
        }
        ghost.session.reads += 1
        let guarantee = ghost.session.wasRead.contains(path) ? "monotonic reads" : "read your writes"
        let meant = ghost.session.view[path]
        if seen.map(Session.members) != meant {
            violate("\(guarantee): \(path) is \(Self.text(seen)), not \(Self.text(meant))")
        }
        ghost.session.wasRead.insert(path)
    }

    private mutating func readList(then next: @escaping Agenda.Step) {
        guard isUp, random.chance(0.7) else {
            compareList(with: ghost.session.list)
            return next(&self)
        }
        let asked = now
        later(random.milliseconds(1...100), "fetch of the list") { world in
            let copy = Session.Copy(body: world.serverList, at: asked)
            world.later(world.random.milliseconds(1...100), "read of the list") { world in
                guard world.process != nil else { return next(&world) }
                if world.ghost.session.list.at <= asked { world.ghost.session.list = copy }
                world.compareList(with: copy)
                next(&world)
            }
        }
    }

    private mutating func compareList(with copy: Session.Copy) {
        let rows = rows(since: copy.at) { $0.upstream == "api" }
        // The list may show a create whose answer was lost: it is marked.
        guard let body = copy.body, !rows.contains(where: { $0.localID != nil && $0.state != .delivered && $0.firstSentAt != nil }) else {
            return
        }
        let outcome = CollectionFold.fold(body, query: nil, with: rows.map { folded($0) }, resource: Session.resource)
        guard !outcome.isDirty else { return }
        ghost.session.lists += 1
        let text = { (values: [JSONValue]) in values.map { Self.text(Session.members($0)) }.sorted() }
        let (seen, meant) = (text(outcome.value.array ?? []), text(Array(ghost.session.view.values)))
        if seen != meant { violate("read your writes, in the list: \(seen), not \(meant)") }
    }

    static func text(_ value: JSONValue?) -> String {
        guard let members = value?.object else { return "nothing" }
        return members.names.sorted().map { "\($0): \(members[$0].map { String(decoding: $0.serialized(), as: UTF8.self) } ?? "")" }
            .joined(separator: ", ")
    }
}
