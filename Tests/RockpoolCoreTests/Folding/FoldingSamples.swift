// Helpers of the folding tests: a resource, writes, and a small model of an upstream.
import HTTPTypes
import RockpoolCore

extension Resource {
    static let notes = Resource(collection: "/notes", items: "/items", updatedAt: "/updatedAt")
    static let enveloped = Resource(collection: "/notes", envelope: "/data/note", version: "/meta/version", fields: ["/status": "server"])
    static let plain = Resource(collection: "/notes", updatedAt: "/u")
}

extension FoldedWrite {
    static func put(_ sequence: Int64, _ id: String?, _ body: String) -> FoldedWrite {
        FoldedWrite(sequence: sequence, method: .put, isItem: true, id: id, contentType: "application/json", body: Array(body.utf8))
    }

    static func patch(_ sequence: Int64, _ id: String?, _ body: String, _ type: String = "application/merge-patch+json") -> FoldedWrite {
        FoldedWrite(sequence: sequence, method: .patch, isItem: true, id: id, contentType: type, body: Array(body.utf8))
    }

    static func delete(_ sequence: Int64, _ id: String?) -> FoldedWrite {
        FoldedWrite(sequence: sequence, method: .delete, isItem: true, id: id)
    }

    static func create(_ sequence: Int64, _ id: String?, _ body: String, _ type: String? = "application/json; charset=utf-8") -> FoldedWrite
    {
        FoldedWrite(sequence: sequence, method: .post, isItem: false, id: id, contentType: type, body: Array(body.utf8))
    }

    /// Returns the write as delivered, with the upstream's response.
    func delivered(_ answer: JSONValue? = nil) -> FoldedWrite {
        var write = self
        (write.isDelivered, write.answer) = (true, answer)
        return write
    }

    func action(_ action: String) -> FoldedWrite {
        var write = self
        (write.method, write.isItem, write.action) = (.post, true, action)
        return write
    }
}

/// A model API that applies writes in order, with string ids and without any folding.
struct ModelServer {
    private(set) var items: [(id: String, object: JSONValue)]

    init(_ items: [(id: String, object: JSONValue)]) { self.items = items }

    subscript(id: String) -> JSONValue? { items.first { $0.id == id }?.object }

    func list(where belongs: (JSONValue) -> Bool = { _ in true }) -> JSONValue {
        let objects = items.map(\.object).filter(belongs)
        return ["items": .array(objects), "total": .number(JSONNumber(Int64(objects.count)))]
    }

    mutating func apply(_ write: FoldedWrite) throws {
        guard let id = write.id else { return }
        let place = items.firstIndex { $0.id == id }
        switch (write.method, place) {
        case (.delete, let place?): items.remove(at: place)
        case (.put, let place): set(id, try body(write, over: place.map { items[$0].object }), at: place)
        case (.post, nil): set(id, try body(write, over: nil), at: nil)
        case (.patch, let place?):
            let change = try JSONValue.parse(write.body)
            if change.array != nil {
                guard let changed = try? JSONPatch(document: change).applied(to: items[place].object) else { return }
                set(id, changed, at: place)
            } else {
                set(id, items[place].object.merging(change), at: place)
            }
        default: return
        }
    }

    private func body(_ write: FoldedWrite, over base: JSONValue?) throws -> JSONValue {
        var object = try JSONValue.parse(write.body)
        if object["updatedAt"] == nil, let kept = base?["updatedAt"] { object["updatedAt"] = kept }
        return object
    }

    private mutating func set(_ id: String, _ object: JSONValue, at place: Int?) {
        var object = object
        object["id"] = .string(id)
        if let place { items[place].object = object } else { items.append((id, object)) }
    }
}
