// Two devices that write independently while offline and deliver later, one exchange at a time in any order (issue 5, done when).
import HTTPTypes
import RockpoolCore

/// A queued write of a device.
struct DeviceWrite {
    var id: String?
    var request: RequestHead
    var body: [UInt8]
    /// The state that the client saw: with an ETag when it came from the server, without one when it is the result of an earlier write.
    var base: Conflict.Side?
    var mine: JSONValue?
    var acceptedAt: Timestamp
    var rounds = 0
    var mayHaveApplied = false
    /// The reason for a decision in the next step, in view of the server's state: a refusal, or a changed base.
    var refusal: ConflictCase.Cause?
    /// True if the write yielded to the server's version, so that its content was not stored.
    var isYielded = false
}

/// A device: the states it has fetched, its writes, and its current view.
struct Device {
    private(set) var seen: [String: Conflict.Side] = [:]
    private(set) var view: [String: JSONValue] = [:]
    private(set) var queue: [DeviceWrite] = []
    private(set) var done: [DeviceWrite] = []
    private(set) var conflicts: [ConflictVerdict] = []
    /// The ETag of each entity after its last write from here was stored exactly as sent.
    private var stored: [String: String] = [:]
    let resource: Resource

    init(_ resource: Resource) { self.resource = resource }

    // MARK: offline

    mutating func pull(_ server: ModelAPI) {
        for id in Set(server.items.keys).union(seen.keys) where server.side(id)?.etag != seen[id]?.etag { seen[id] = server.side(id) }
        view = seen.compactMapValues { try? JSONValue.parse($0.body) }
    }

    mutating func write(_ token: String, at now: Timestamp, _ random: inout SeededGenerator) {
        guard let id = random.chance(70) ? view.keys.sorted().randomElement(using: &random) : nil, let base = view[id] else {
            let named = random.one(of: ["x", "y"])
            return random.chance(50) && view[named] == nil && !queue.contains { $0.id == named }
                ? create(["id": .string(named), "a": .string(token)], id: named, at: now) : create(["a": .string(token)], id: nil, at: now)
        }
        if random.chance(20) { return enqueue(.delete, id, "", "", nil, at: now) }
        var mine = base
        mine[random.one(of: ["a", "b", "c"])] = .string(token)
        if random.chance(20) { mine[random.one(of: ["a", "b", "c"])] = nil }
        let (method, type, body) = random.write(from: base, to: mine)
        enqueue(method, id, type, body, mine, at: now)
    }

    /// Adds a step to a counter.
    mutating func count(_ id: String, _ step: Int64, at now: Timestamp, _ random: inout SeededGenerator) {
        guard var mine = view[id], let base = view[id] else { return }
        mine["n"] = .number(JSONNumber((base["n"]?.integer ?? 0) + step))
        let (method, type, body) = random.write(from: base, to: mine)
        enqueue(method, id, type, body, mine, at: now)
    }

    private mutating func create(_ object: JSONValue, id: String?, at now: Timestamp) {
        var request = RequestHead.note(id == nil ? .post : .put, id: id)
        if id != nil { request.fields[.ifNoneMatch] = "*" }
        queue.append(DeviceWrite(id: id, request: request, body: object.serialized(), mine: object, acceptedAt: now))
        if let id { view[id] = object }
    }

    private mutating func enqueue(
        _ method: HTTPRequest.Method, _ id: String, _ type: String, _ body: String, _ mine: JSONValue?, at now: Timestamp
    ) {
        let isFirst = !queue.contains { $0.id == id }
        let base = isFirst ? seen[id] : view[id].map { Conflict.Side(body: $0.serialized(), contentType: "application/json") }
        queue.append(
            DeviceWrite(id: id, request: .note(method, type, id: id), body: Array(body.utf8), base: base, mine: mine, acceptedAt: now))
        view[id] = mine
    }

    // MARK: online

    /// Performs one exchange with the server.
    mutating func step(_ server: inout ModelAPI, losesAnswer: Bool, _ random: inout SeededGenerator) {
        guard var write = queue.first else { return }
        if write.refusal != nil {
            decide(&write, server, &random)
        } else if isReady(&write, server) {
            send(&write, &server, losesAnswer: losesAnswer)
        } else {
            write.refusal = .seen
            queue[0] = write
        }
    }

    /// True if the write can be sent with a condition: its own, the ETag of its base, or the current ETag if a precheck finds the base
    /// unchanged.
    private func isReady(_ write: inout DeviceWrite, _ server: ModelAPI) -> Bool {
        let fields = write.request.fields
        if write.request.method == .post || fields.contains(.ifMatch) || fields.contains(.ifNoneMatch) { return true }
        if let tag = write.base?.etag ?? write.id.flatMap({ stored[$0] }) {
            write.request.fields[.ifMatch] = tag
            return true
        }
        guard let base = write.base, let theirs = write.id.flatMap(server.side),
            !ConflictPrecheck.hasMoved(from: base, to: theirs, resource: resource)
        else { return false }
        write.request.fields[.ifMatch] = theirs.etag
        return true
    }

    private mutating func send(_ write: inout DeviceWrite, _ server: inout ModelAPI, losesAnswer: Bool) {
        let answer = server.answer(write.request, write.body)
        if losesAnswer, write.request.method != .post {
            write.mayHaveApplied = true
            queue[0] = write
            return
        }
        switch answer.status {
        case 200..<300: end(write, stored: write.rounds == 0 ? answer.side?.etag : nil)
        case 404 where write.request.method == .delete: end(write, stored: nil)
        default:
            write.refusal = .refused(status: answer.status)
            queue[0] = write
        }
    }

    private mutating func decide(_ write: inout DeviceWrite, _ server: ModelAPI, _ random: inout SeededGenerator) {
        let theirs = write.id.flatMap(server.side)
        let met = ConflictCase(
            request: write.request, body: write.body, resource: resource, base: write.base,
            theirs: theirs.map { .present($0, ResponseHead(status: 200)) } ?? .gone, cause: write.refusal ?? .seen, rounds: write.rounds,
            mayHaveApplied: write.mayHaveApplied, acceptedAt: write.acceptedAt)
        var verdict = met.verdict()
        if verdict.action == .ask {
            let choice = random.one(of: Conflict.Resolution.allCases)
            verdict = (try? met.resolved(by: choice, merged: mixed(verdict), seen: theirs)) ?? (try? met.resolved(by: .theirs)) ?? verdict
        }
        switch verdict.action {
        case .delivered: return end(write, stored: verdict.isAsMeant ? theirs?.etag : nil)
        case .yield:
            write.isYielded = true
            end(write, stored: nil)
        case .resend(let resend):
            (write.request, write.body, write.base, write.refusal) = (resend.request, resend.body, theirs, nil)
            (write.rounds, write.mayHaveApplied) = (write.rounds + 1, false)
            queue[0] = write
        case .ask: return
        }
        conflicts.append(verdict)
    }

    /// A user's mixture of the two sides.
    private func mixed(_ verdict: ConflictVerdict) -> JSONValue? {
        let (mine, theirs) = (
            verdict.mine.flatMap { try? JSONValue.parse($0.body) }, verdict.theirs.flatMap { try? JSONValue.parse($0.body) }
        )
        var mixed = theirs ?? mine
        mixed?["a"] = mine?["a"]
        return mixed
    }

    private mutating func end(_ write: DeviceWrite, stored tag: String?) {
        if let id = write.id { stored[id] = tag }
        done.append(write)
        queue.removeFirst()
    }
}
