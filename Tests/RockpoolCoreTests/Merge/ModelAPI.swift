// A small model of an API with strong ETags, the receiver of the requests of the merge tests (RFC 9110 §13, RFC 7396, RFC 6902).
import HTTPTypes
import RockpoolCore

struct ModelAPI {
    private(set) var items: [String: (object: JSONValue, version: Int)]
    private(set) var clock: Int64 = 0
    private var created = 0

    init(items: [String: (object: JSONValue, version: Int)] = [:]) { self.items = items }

    struct Answer {
        var status: Int
        var side: Conflict.Side?
    }

    var now: Timestamp { noon + .seconds(clock) }

    /// Returns the object without the members that the server itself writes.
    func bare(_ id: String) -> JSONValue? {
        items[id].map { item in
            var object = item.object
            object["updatedAt"] = nil
            return object
        }
    }

    func side(_ id: String) -> Conflict.Side? {
        items[id].map { Conflict.Side(body: $0.object.serialized(), contentType: "application/json", etag: "\"\($0.version)\"") }
    }

    mutating func answer(_ request: RequestHead, _ body: [UInt8]) -> Answer {
        clock += 1
        let sent = (try? JSONValue.parse(body)) ?? .null
        if request.method == .post {
            created += 1
            return store(sent, "new\(created)", status: 201)
        }
        let id = String(request.target.dropFirst("/notes/".count))
        guard let item = items[id] else {
            guard request.fields[.ifNoneMatch] == "*", request.method == .put else { return Answer(status: 404) }
            return store(sent, id, status: 201)
        }
        if request.fields[.ifNoneMatch] == "*" { return Answer(status: 412) }
        if let tag = request.fields[.ifMatch], tag != "\"\(item.version)\"" { return Answer(status: 412) }
        switch request.method {
        case .delete:
            items[id] = nil
            return Answer(status: 204)
        case .patch where request.fields[.contentType] == "application/json-patch+json":
            guard let changed = try? JSONPatch(document: sent).applied(to: item.object) else { return Answer(status: 422) }
            return store(changed, id)
        case .patch: return store(item.object.merging(sent), id)
        default: return store(sent, id)
        }
    }

    private mutating func store(_ object: JSONValue, _ id: String, status: Int = 200) -> Answer {
        var object = object
        (object["id"], object["updatedAt"]) = (.string(id), .string(RFC3339.format(now)))
        // Versions are counted for the whole server, so that no tag occurs twice.
        items[id] = (object, Int(clock) + 100)
        return Answer(status: status, side: side(id))
    }
}

extension SeededGenerator {
    /// Expresses a change in a random one of the possible methods and media types.
    mutating func write(from base: JSONValue, to mine: JSONValue) -> (HTTPRequest.Method, String, String) {
        let (old, new) = (base.object ?? JSONObject(), mine.object ?? JSONObject())
        var patch = JSONObject()
        var operations: [JSONValue] = []
        for name in old.names where new[name] == nil {
            patch[name] = .null
            operations.append(["op": "remove", "path": .string("/" + name)])
        }
        for (name, value) in new where old[name] != value {
            patch[name] = value
            operations.append(["op": "add", "path": .string("/" + name), "value": value])
        }
        return switch Int.random(in: 0..<4, using: &self) {
        case 0: (.patch, "application/merge-patch+json", written(.object(patch)))
        case 1: (.patch, "application/json", written(.object(patch)))
        case 2: (.patch, "application/json-patch+json", written(.array(operations)))
        default: (.put, "application/json", written(mine))
        }
    }
}
