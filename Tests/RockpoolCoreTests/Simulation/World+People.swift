// The actions of users and their clients: writes, reads, credentials, cancellations, retries (docs/outbox.md#client-view,
// docs/outbox.md#steering).
import HTTPTypes
import RockpoolCore

struct Person {
    let name: String
    /// Incremented when a new token is fetched.
    var generation = 0
    /// Created items, by the path that the client uses.
    var created: [(upstream: String, path: String)] = []
}

extension World {
    mutating func act(_ index: Int, writes: Int) {
        guard !isHealed else { return }
        if process == nil { return later(.seconds(1), "person") { $0.act(index, writes: writes) } }
        showCredential(of: index, isFresh: random.chance(0.7))
        let what = random.unit()
        if what < 0.15 { steerSomething() } else if what < 0.3 { read(index) } else if writes > 0 { write(index) }
        if writes > 0 || random.chance(0.9) {
            later(random.milliseconds(10...12_000), "person") { $0.act(index, writes: what < 0.3 ? writes : max(0, writes - 1)) }
        }
    }

    /// Every request carries a token; the process keeps the newest and reports a changed one to the machine.
    mutating func showCredential(of index: Int, isFresh: Bool) {
        let name = people[index].name
        if isFresh { people[index].generation = upstreams.values.map { $0.generation[name, default: 0] }.max() ?? 0 }
        let token = "\(name):\(people[index].generation)"
        guard process != nil, process?.credentials[name] != token else { return }
        process?.credentials[name] = token
        step(.credential(principal: name))
    }

    // MARK: Writing

    private mutating func write(_ index: Int) {
        var operation = draft(index)
        let localID = operation.localID
        commit(
            { world in
                world.place(&operation)
                let row = world.disk.append(operation)
                if let localID { world.people[index].created.append((row.upstream, "\(row.request.target)/\(localID)")) }
                return { world in
                    if world.plan.sabotage != .acknowledgesEarly { world.ghost.acknowledged.insert(row.sequence) }
                    let isLate = world.plan.sabotage == .newsOutOfOrder && row.sequence % 2 == 1
                    if isLate {
                        world.soon(.milliseconds(6000), "news") { $0.step(.changed(OperationSummary($0.disk.row(row.sequence).operation))) }
                    } else {
                        world.step(.changed(OperationSummary(row)))
                    }
                }
            }, failed: { _ in })
        if plan.sabotage == .acknowledgesEarly { ghost.acknowledged.insert(Int64(disk.rows.count + 1)) }
    }

    /// Sets the fields that the store determines together with the row: the lane and the dependencies.
    private func place(_ operation: inout QueuedWrite) {
        let references = LocalIDScan.references(head: operation.request, body: operation.body.bytes).map(\.id)
        for row in disk.rows.map(\.operation) where !row.state.hasEnded && row.upstream == operation.upstream && row.lane != operation.lane
        {
            if let id = row.localID, references.contains(id) { operation.needs.insert(row.sequence) }
        }
        let before = operation
        if operation.priority > 50, let other = disk.open.last, other.upstream == before.upstream, other.lane != before.lane {
            operation.needs.insert(other.sequence)
        }
    }

    private mutating func draft(_ index: Int) -> QueuedWrite {
        let upstream = random.pick(upstreamNames)
        let mine = people[index].created.filter { $0.upstream == upstream }
        let item = !mine.isEmpty && random.chance(0.6) ? random.pick(mine).path : "/notes/\(random.number(1...3))"
        let written = random.chance(0.4) ? serverPath(item) : item
        ghost.marks += 1
        var body: JSONValue = ["mark": .number(JSONNumber(Int64(ghost.marks)))]
        if random.chance(0.06) { body["poison"] = true }
        if let other = mine.last, random.chance(0.2) { body["ref"] = .string(String(other.path.split(separator: "/").last ?? "")) }
        var localID: LocalID?
        var (method, target) = (HTTPRequest.Method.put, written)
        switch random.number(0...9) {
        case 0...2:
            localID = LocalID.make(now: now, random: (random.next(), random.next()))
            let parent = mine.filter { $0.path.hasPrefix("/lists") }.last
            (method, target) = (
                .post, parent.map { random.chance(0.5) ? "\($0.path)/items" : "/lists" } ?? random.pick(["/lists", "/notes"])
            )
        case 3, 4: method = .patch
        case 5: method = .delete
        case 6: (method, target) = (.post, written + "/touch")
        default: break
        }
        let lane = "\(upstream) \(localID.map { "\(target)/\($0)" } ?? item)"
        return finished(
            localID, RequestHead(method: method, origin: origin(upstream), target: target, fields: fields(method, written, upstream)),
            body: method == .delete ? [] : body.serialized(), upstream: upstream, lane: lane, principal: people[index].name)
    }

    private mutating func fields(_ method: HTTPRequest.Method, _ path: String, _ upstream: String) -> HTTPFields {
        var fields: HTTPFields = [.contentType: method == .patch ? "application/merge-patch+json" : "application/json"]
        if method != .post, random.chance(0.4), let tag = upstreams[upstream]?.tag(path), !tag.hasPrefix("W/") { fields[.ifMatch] = tag }
        return fields
    }

    private mutating func finished(
        _ localID: LocalID?, _ request: RequestHead, body: [UInt8], upstream: String, lane: String, principal: String
    ) -> QueuedWrite {
        var operation = QueuedWrite(
            sequence: 0, id: "", request: request, body: .inline(body), upstream: upstream, entity: lane, lane: lane, idempotencyKey: "",
            principal: principal, priority: random.number(-100...100), acceptedAt: now, nextAttemptAt: now,
            expiresAt: random.chance(0.08) ? now + random.milliseconds(1000...60_000) : nil)
        operation.localID = localID
        return operation
    }

    private func origin(_ upstream: String) -> OriginAddress { OriginAddress(scheme: .https, host: "\(upstream).example.com") }

    /// Returns the path of an item at its upstream, once it is known.
    func serverPath(_ path: String) -> String {
        let segments = path.split(separator: "/").map { segment in
            LocalID(segment).flatMap { disk.mappings[$0]?.id.text } ?? String(segment)
        }
        return "/" + segments.joined(separator: "/")
    }

    // MARK: Steering

    private mutating func steerSomething() {
        guard let operation = disk.open.isEmpty ? nil : random.pick(disk.open) else { return }
        steer(random.pick([.retry, .retry, .cancel, .discard, .edit]), operation.sequence)
    }

    mutating func steer(_ steering: OperationSteering, _ sequence: Int64) {
        let mark = ghost.marks + 1
        ghost.marks = mark
        commit(
            { world in
                let before = world.disk.row(sequence)
                guard case .allowed(let state, let reason, let warning) = steering.verdict(on: before.operation) else { return { _ in } }
                world.note("  \(steering) \(sequence)")
                if steering == .edit { return world.edit(before.operation, mark: mark) }
                if steering == .retry, before.wasSent { world.ghost.licences[sequence, default: 0] += 1 }
                if steering == .cancel, warning == nil {
                    world.ghost.finallyCancelled.insert(sequence)
                    if world.ghost.effects[sequence] != nil { world.violate("P13 \(sequence) is cancelled for good, and had an effect") }
                }
                let disposition = Disposition(
                    state: state, reason: reason, nextAttemptAt: steering == .retry ? world.now : nil, countsAsAnswered: false)
                let row = world.disk.move(sequence, disposition, from: steering.allowedFrom, now: world.now)
                return { $0.step(.changed(OperationSummary(row))) }
            }, failed: { _ in })
    }

    /// Puts the new operation in the old one's place; the machine receives the new one before the end of the old one.
    private mutating func edit(_ old: QueuedWrite, mark: Int) -> Agenda.Step {
        var edited = old
        (edited.state, edited.reason, edited.firstSentAt, edited.lostAt) = (.pending, nil, nil, nil)
        (edited.answeredAttempts, edited.networkAttempts, edited.probes) = (0, 0, 0)
        (edited.acceptedAt, edited.nextAttemptAt, edited.expiresAt) = (now, now, nil)
        if old.request.method != .delete { edited.body = .inline((["mark": .number(JSONNumber(Int64(mark)))] as JSONValue).serialized()) }
        let dependants = disk.open.filter { $0.needs.contains(old.sequence) }.map(\.sequence)
        let (ended, new) = disk.replace(old.sequence, by: edited, now: now)
        ghost.acknowledged.insert(new.sequence)
        return { world in
            world.step(.changed(OperationSummary(new)))
            for sequence in dependants { world.step(.changed(OperationSummary(world.disk.row(sequence).operation))) }
            world.step(.changed(OperationSummary(ended)))
        }
    }
}

extension OperationBody {
    var bytes: [UInt8] { if case .inline(let bytes) = self { bytes } else { [] } }
}
