// A model API with its own state: entities, versions, and known keys (docs/outbox.md#keys, docs/outbox.md#detection).
import HTTPTypes
import RockpoolCore

struct SimulatedUpstream {
    struct Entity {
        var version = 1
        var body: JSONValue
    }

    struct Answer {
        var status: Int
        var fields: HTTPFields = [.contentType: "application/json"]
        var body: [UInt8] = []
    }

    /// A remembered key; the response is nil while the first request with the key is running.
    private struct Seen {
        var payload: [UInt8]
        var at: Timestamp
        var answer: Answer?
    }

    let plan: Plan.Upstream
    private(set) var entities: [String: Entity] = [:]
    private var keys: [String: Seen] = [:]
    private var lastID = 100
    /// By principal: tokens below this generation have expired.
    var generation: [String: Int] = [:]

    init(_ plan: Plan.Upstream) {
        self.plan = plan
        for id in 1...3 { entities["/notes/\(id)"] = Entity(body: ["id": .number(JSONNumber(Int64(id))), "mark": 0]) }
    }

    func refuses(_ token: String?) -> Bool {
        guard let token else { return false }
        let parts = token.split(separator: ":")
        return (parts.last.flatMap { Int($0) } ?? 0) < generation[String(parts.first ?? ""), default: 0]
    }

    /// Returns the response for a known key; nil if the request must be executed.
    mutating func begin(_ request: RequestHead, _ body: [UInt8], now: Timestamp) -> Answer? {
        guard plan.remembersKeys, let key = request.fields[.idempotencyKey] else { return nil }
        let payload = Array("\(request.method) \(request.target) ".utf8) + body
        if let seen = keys[key], now - seen.at < plan.context.idempotency.ttl {
            if seen.payload != payload { return Answer(status: 422, body: Array(#"{"title":"Idempotency-Key is already used"}"#.utf8)) }
            return seen.answer ?? Answer(status: 409, body: Array(#"{"title":"A request with this Idempotency-Key is outstanding"}"#.utf8))
        }
        keys[key] = Seen(payload: payload, at: now)
        return nil
    }

    /// Executes the request. The second value is true if it had an effect.
    mutating func apply(_ request: RequestHead, _ body: [UInt8]) -> (answer: Answer, hasEffect: Bool) {
        let (answer, hasEffect) = effect(request, body)
        if plan.remembersKeys, let key = request.fields[.idempotencyKey] {
            // A refusal is not remembered, because it had no effect.
            if hasEffect { keys[key]?.answer = answer } else { keys[key] = nil }
        }
        return (answer, hasEffect)
    }

    /// Simulates an edit by another client.
    mutating func edit(_ path: String, _ value: Int64) {
        guard entities[path] != nil else { return }
        entities[path]?.body["foreign"] = .number(JSONNumber(value))
        entities[path]?.version += 1
    }

    func tag(_ path: String) -> String? {
        guard let version = entities[path]?.version else { return nil }
        switch plan.tags {
        case .none: return nil
        case .weak: return "W/\"v\(version)\""
        case .strong: return "\"v\(version)\""
        }
    }

    private mutating func effect(_ request: RequestHead, _ bytes: [UInt8]) -> (Answer, Bool) {
        let path = request.target
        let body = try? JSONValue.parse(bytes)
        if body?["poison"] != nil { return (Answer(status: 422, body: Array("{}".utf8)), false) }
        let segments = path.split(separator: "/")
        if request.method == .post, segments.last == "touch" {
            let item = "/" + segments.dropLast().joined(separator: "/")
            guard entities[item] != nil else { return (Answer(status: 404), false) }
            entities[item]?.version += 1
            return (Answer(status: 200), true)
        }
        if request.method == .post { return created(in: path, segments, body) }
        guard let entity = entities[path] else { return (Answer(status: 404), false) }
        if let condition = request.fields[.ifMatch], condition != "\"v\(entity.version)\"" || plan.tags != .strong {
            return (Answer(status: 412), false)
        }
        switch request.method {
        case .delete:
            entities[path] = nil
            return (Answer(status: 204), true)
        case .put:
            entities[path]?.body = body ?? .null
            if body?.object != nil { entities[path]?.body["id"] = entity.body["id"] }
        default: entities[path]?.body = entity.body.merging(body ?? .null)
        }
        entities[path]?.version += 1
        return (answer(200, path), true)
    }

    private mutating func created(in collection: String, _ segments: [Substring], _ body: JSONValue?) -> (Answer, Bool) {
        if segments.count > 1, entities["/" + segments.dropLast().joined(separator: "/")] == nil { return (Answer(status: 404), false) }
        lastID += 1
        let path = "\(collection)/\(lastID)"
        var value = body ?? .null
        value["id"] = .number(JSONNumber(Int64(lastID)))
        entities[path] = Entity(body: value)
        var answer = answer(201, path)
        if plan.givesLocation { answer.fields[.location] = path }
        return (answer, true)
    }

    func answer(_ status: Int, _ path: String) -> Answer {
        var answer = Answer(status: status, body: entities[path]?.body.serialized() ?? [])
        answer.fields[.eTag] = tag(path)
        return answer
    }
}
