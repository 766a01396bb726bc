// Reads through the process: the cached server state with the open writes folded in (docs/outbox.md#reads; P8).
import HTTPTypes
import RockpoolCore

extension World {
    mutating func read(_ index: Int) {
        let name = random.pick(upstreamNames)
        let mine = people[index].created.filter { $0.upstream == name }.map(\.path)
        let path = random.pick(["/notes/1", "/notes/2", "/notes/3"] + mine)
        guard weather[name] == .fine, random.chance(0.6) else { return view(name, path) }
        let asked = now
        soon(random.milliseconds(2...150), "fetch") { world in
            // The server's state is read now; the copy counts as old as its request.
            if let body = world.upstreams[name]?.entities[world.serverPath(path)]?.body {
                world.ghost.cache["\(name) \(path)"] = (body, asked)
            }
            world.soon(world.random.milliseconds(2...150), "read") { $0.view(name, path) }
        }
    }

    /// A client's view must contain its last write, or a later one.
    private mutating func view(_ name: String, _ path: String) {
        let lane = "\(name) \(path)"
        let rows = disk.rows.map(\.operation).filter { $0.lane == lane && !$0.request.target.hasSuffix("/touch") }.sorted {
            $0.place < $1.place
        }
        let cached = ghost.cache[lane]
        let included = rows.last { row in
            row.state == .delivered && row.endedAt.map { ended in cached.map { ended < $0.at } ?? false } ?? false
        }
        let shown = rows.filter { row in
            switch row.state {
            case .pending, .inflight: true
            // A later one has passed it, and the copy shows what has become of both.
            case .uncertain, .conflicted, .parked: included.map { $0.place < row.place || $0.principal != row.principal } ?? true
            case .delivered: cached.map { copy in row.endedAt.map { copy.at <= $0 } ?? true } ?? true
            case .dead, .cancelled, .superseded: false
            }
        }
        let writes = shown.map { row in
            FoldedWrite(
                sequence: row.sequence, method: row.request.method, isItem: row.localID == nil,
                id: String(path.split(separator: "/").last ?? ""),
                contentType: row.request.fields[.contentType], body: row.body.bytes, isDelivered: row.state == .delivered)
        }
        ghost.reads += 1
        let seen: JSONValue?
        switch ItemFold.fold(cached?.body, with: writes, resource: Resource(collection: "/notes", item: "/notes/{id}")) {
        case .unchanged: seen = cached?.body
        case .present(let body, last: _, count: _): seen = body
        case .dirty: return
        case .deleted: seen = nil
        }
        let standing = rows.filter { ghost.acknowledged.contains($0.sequence) && ![.dead, .cancelled, .superseded].contains($0.state) }
        guard let last = standing.last else { return }
        // A write that was given up may have taken effect, and one with its 202 in transit is already visible. A stuck write
        // that let this one pass may have taken effect after it.
        let later = rows.filter { row in
            (row.place >= last.place || row.principal != last.principal || disk.passed.contains(row.sequence))
                && (ghost.effects[row.sequence] != nil || shown.contains { $0.sequence == row.sequence })
        }
        // A patch of a deleted item leaves it deleted.
        let before = last.request.method == .patch ? shown : []
        let deletes = ([last] + later + before).contains { $0.request.method == .delete }
        let marks = ([last] + later).compactMap { (try? JSONValue.parse($0.body.bytes))?["mark"] }
        if let seen, let mark = seen["mark"], marks.contains(mark) { return }
        if seen == nil, deletes || cached == nil && writes.isEmpty { return }
        violate("P8 \(lane): \(seen.map { String(decoding: $0.serialized(), as: UTF8.self) } ?? "nothing") without \(last.sequence)")
    }
}
