// The writes of a session: sent at once where the line and the lane permit it, else queued; and their effects on the copies
// (docs/outbox.md#effects, docs/outbox.md#base).
import HTTPTypes
import RockpoolCore

extension World {
    /// Writes a note; `path` is the collection for a create, and a POST to a note is an action.
    mutating func writeNote(_ method: HTTPRequest.Method, _ path: String, then next: @escaping Agenda.Step) {
        ghost.marks += 1
        let mark = JSONValue.number(JSONNumber(Int64(ghost.marks)))
        let isCreate = path == "/notes"
        let before = ghost.session.view[path] ?? [:]
        var change: JSONValue = ["mark": mark]
        change[random.chance(0.5) ? "title" : "body"] = mark
        let after = isCreate ? change : before.merging(change)
        let body: [UInt8] =
            switch method {
            case .delete: []
            case .post where !isCreate: []
            case .put: after.serialized()
            default: change.serialized()
            }
        let target = isCreate ? path : method == .post ? path + "/touch" : path
        let result: JSONValue? = method == .delete ? nil : method == .post && !isCreate ? before : after
        // Without `Accept` a portal's page would pass for the answer to a DELETE (docs/outbox.md#answers).
        var fields: HTTPFields = [
            .accept: "application/json", .contentType: method == .patch ? "application/merge-patch+json" : "application/json",
        ]
        if body.isEmpty { fields[.contentType] = nil }
        let request = RequestHead(
            method: method, origin: OriginAddress(scheme: .https, host: "api.example.com"), target: target, fields: fields)
        let write = SessionWrite(request: request, body: body, path: isCreate ? nil : path, result: result)
        if maySendLive(write) { sendLive(write, then: next) } else { enqueue(write, then: next) }
    }

    /// One write of the client: the path of its note, nil for a create, and the members of the note afterwards.
    struct SessionWrite {
        var request: RequestHead
        var body: [UInt8]
        var path: String?
        var result: JSONValue?
    }

    private mutating func maySendLive(_ write: SessionWrite) -> Bool {
        guard weather["api"] == .fine, process?.isReachable["api"] == true, random.chance(0.6) else { return false }
        guard let path = write.path else { return true }
        let lane = "api \(path)"
        let context = plan.upstreams["api"]?.context
        let isFree = disk.rows.allSatisfy { row in
            guard row.operation.lane == lane else { return true }
            guard row.operation.state.hasEnded else { return false }
            let held = context?.holdsLane(after: row.operation, isDelivered: row.operation.state == .delivered, now: now)
            return held.map { $0 <= now } ?? true
        }
        return isFree && !serverPath(path).contains("loc_")
    }

    // MARK: live

    private mutating func sendLive(_ write: SessionWrite, then next: @escaping Agenda.Step) {
        ghost.session.live += 1
        var request = write.request
        request.target = serverPath(request.target)
        if let path = write.path, request.method != .post { request.fields[.ifMatch] = ghost.session.copies[path]?.tag }
        request.fields[.idempotencyKey] = "live-\(ghost.marks)"
        let sent = request
        let (boot, isLost) = (boots, random.chance(plan.faults))
        later(random.milliseconds(1...100), "live") { world in
            _ = world.upstreams["api"]?.begin(sent, write.body, now: world.now)
            guard let (answer, hasEffect) = world.upstreams["api"]?.apply(sent, write.body) else { return }
            if answer.status == 412 { world.violate("one client never conflicts with itself: \(sent.method) \(sent.target) is 412") }
            world.later(world.random.milliseconds(1...100), "live answer") { world in
                guard world.boots == boot, world.process != nil else {
                    // The connection broke with the process: the client does not know.
                    if hasEffect { world.doubt(write, answer) }
                    return next(&world)
                }
                if isLost {
                    return world.enqueue(write, after: sent) { world in
                        let key = sent.fields[.idempotencyKey]
                        if !world.disk.rows.contains(where: { $0.operation.idempotencyKey == key }) { world.doubt(write, answer) }
                        next(&world)
                    }
                }
                world.take(answer, to: write)
                next(&world)
            }
        }
    }

    /// The client got neither an answer nor a 202: it finds the state of the note by a read.
    private mutating func doubt(_ write: SessionWrite, _ answer: SimulatedUpstream.Answer) {
        guard let path = write.path ?? answer.fields[.location] else { return }
        ghost.session.doubtful.insert(path)
    }

    /// The effect of a live answer, as the proxy works it into its copies.
    private mutating func take(_ answer: SimulatedUpstream.Answer, to write: SessionWrite) {
        guard (200...299).contains(answer.status) else {
            return violate("lost update: \(write.request.method) \(write.path ?? "") is answered \(answer.status)")
        }
        let path = write.path ?? answer.fields[.location] ?? ""
        changed(path, to: write.result)
        let id = serverPath(path).split(separator: "/").last.map(String.init)
        let folded = FoldedWrite(
            sequence: 1, method: write.request.method, isItem: write.path != nil, id: id, idIsNumber: true,
            contentType: write.request.fields[.contentType], body: write.body,
            action: write.request.target.hasSuffix("/touch") ? "touch" : nil,
            answer: write.request.method == .delete ? nil : try? JSONValue.parse(answer.body), isDelivered: true)
        if plan.sabotage != .forgetsLiveEffects { work(folded, into: path, tag: answer.fields[.eTag]) }
    }

    /// Works an answered write into the copies of its note and of the list.
    mutating func work(_ write: FoldedWrite, into path: String, tag: String?) {
        var copy = ghost.session.copies[path] ?? Session.Copy(body: nil, at: now)
        switch ItemFold.fold(copy.body, with: [write], resource: Session.resource) {
        case .present(let body, _, _): copy = Session.Copy(body: body, at: now, tag: tag)
        case .deleted: copy = Session.Copy(body: nil, at: now)
        // An action without the note in its answer: the version is not known any more, nor is that of a response requested before.
        case .unchanged, .dirty: (copy.at, copy.tag) = (now, nil)
        }
        ghost.session.copies[path] = copy
        guard let list = ghost.session.list.body else { return }
        let outcome = CollectionFold.fold(list, query: nil, with: [write], resource: Session.resource)
        // A list that lacks the effect keeps its time, so that reads fold the delivered write.
        if !outcome.isDirty { ghost.session.list = Session.Copy(body: outcome.value, at: now) }
    }

    /// The client's own view after a write of it.
    private mutating func changed(_ path: String, to result: JSONValue?) {
        ghost.session.view[path] = result
        ghost.session.wasRead.remove(path)
        if result == nil { ghost.session.gone.insert(path) }
    }

    // MARK: queued

    /// - Parameter sent: the live attempt whose answer was lost, nil without one.
    private mutating func enqueue(_ write: SessionWrite, after sent: RequestHead? = nil, then next: @escaping Agenda.Step) {
        let localID = write.path == nil ? LocalID.make(now: now, random: (random.next(), random.next())) : nil
        let path = write.path ?? "/notes/\(localID?.text ?? "")"
        let lane = "api \(path)"
        let isDown = process == nil
        guard !isDown else { return next(&self) }
        commit(
            { world in
                var operation = QueuedWrite(
                    sequence: 0, id: "", request: write.request, body: .inline(write.body), upstream: "api", entity: lane, lane: lane,
                    idempotencyKey: "", principal: world.people[0].name, acceptedAt: world.now, nextAttemptAt: world.now)
                operation.localID = localID
                // The create of the note is its lane's first operation, so references need no edges of their own.
                operation.baseSequence = world.disk.rows.map(\.operation).last { $0.lane == lane && !$0.state.hasEnded }?.sequence
                if operation.baseSequence == nil { operation.baseETag = world.ghost.session.copies[path]?.tag }
                let row = world.disk.append(operation, after: sent, at: world.now)
                if sent != nil { world.ghost.effects[row.sequence] = 1 }
                world.ghost.session.queued += 1
                // What is on disk is shown, whether or not its client gets the 202.
                world.changed(path, to: write.result)
                return { world in
                    world.ghost.acknowledged.insert(row.sequence)
                    world.step(.changed(OperationSummary(row)))
                }
            }, failed: { _ in })
        later(.milliseconds(20), "accepted", next)
    }

    /// The condition of a queued write: the version that its client could have seen, or that its own earlier write has made.
    func condition(of operation: QueuedWrite, _ request: RequestHead) -> String? {
        guard plan.isSession, request.method != .post, !request.fields.contains(.ifMatch) else { return request.fields[.ifMatch] }
        if plan.sabotage == .conditionsOfTheFirstVersion { return "\"v1\"" }
        guard let sequence = operation.baseSequence else { return operation.baseETag ?? upstreams["api"]?.tag(request.target) }
        // Where the answer named no version, it is read just before the write.
        return disk.row(sequence).operation.result?.head.fields[.eTag] ?? upstreams["api"]?.tag(request.target)
    }

    /// Checks a row after its outcome was recorded, and works its effect into the copies.
    mutating func checkSession(_ row: QueuedWrite) {
        guard plan.isSession else { return }
        switch row.state {
        case .conflicted: violate("one client never conflicts with itself: \(row.sequence) \(row.request.method) \(row.lane)")
        case .dead: violate("lost update: \(row.sequence) is dead (\(row.reason.map { "\($0)" } ?? ""))")
        case .delivered where row.request.method != .post || row.localID != nil || row.result != nil: workDelivered(row)
        default: break
        }
    }

    private mutating func workDelivered(_ row: QueuedWrite) {
        guard ghost.session.worked.insert(row.sequence).inserted, let result = row.result else { return }
        let answer = row.request.method == .delete ? nil : try? JSONValue.parse(result.body)
        work(folded(row, answer: answer), into: String(row.lane.dropFirst("api ".count)), tag: result.head.fields[.eTag])
    }

    /// After a start: the effects of deliveries that a crash kept from the copies.
    mutating func recallSession() {
        guard plan.isSession else { return }
        for row in disk.rows.map(\.operation) where row.state == .delivered { workDelivered(row) }
    }

    /// No lost update: at the end the upstream has what the client means, and nothing else.
    mutating func checkSessionEnd() {
        guard plan.isSession, ghost.violations.isEmpty, disk.violations.isEmpty else { return }
        for path in ghost.session.doubtful { settleDoubt(path) }
        let stand = (upstreams["api"]?.entities.values.map { Self.text(Session.members($0.body)) } ?? []).sorted()
        let meant = ghost.session.view.values.map { Self.text($0) }.sorted()
        if stand != meant { violate("lost update: the upstream has \(stand), the client means \(meant)") }
    }
}
