// The data of one operation that read-your-writes needs (docs/outbox.md#reads).
package import HTTPTypes

/// One write as folding uses it. Its id and body hold server ids wherever the id map has them.
package struct FoldedWrite: Hashable, Sendable {
    /// The position in acceptance order.
    package var sequence: Int64
    /// POST, PUT, PATCH or DELETE; the effect of any other method is unknown.
    package var method: HTTPRequest.Method
    /// True if it addressed an item; false for a collection, to which a POST adds.
    package var isItem: Bool
    /// The item's id as its representation has it: the server's, or the local one while unmapped. All writes of one item carry the same id;
    /// nil when it has none, as for a create without a local id, and for a singleton.
    package var id: String?
    /// True if representations have the id as a number.
    package var idIsNumber: Bool
    /// The body's media type with its parameters; nil is taken for JSON.
    package var contentType: String?
    /// The body as the client sent it, or with local ids replaced.
    package var body: [UInt8]
    /// The action in the path: `publish` of `POST /notes/17/publish`.
    package var action: String?
    /// The representation in the answer of a delivered write (whole body, with envelope), if it had one.
    package var answer: JSONValue?
    /// True if it has taken effect at the upstream, though the cached copy does not show it yet.
    package var isDelivered: Bool
    /// True if the upstream may have shown its effect already: it was sent without an answer so far, and the copy was asked for after that.
    package var mayBeShown = false
    /// When it was made; nil if that is not known.
    package var madeAt: Timestamp?
    /// The ids that the collection had before a create was sent; nil if they are not known.
    package var idsBefore: Set<String>?
    /// True if the body could not be read: what the write does is unknown.
    package var isUnreadable = false
    /// True if it addresses the collection itself and creates nothing.
    package var isCollectionWide = false
    /// True if it removes every item of the collection.
    var emptiesCollection: Bool { isCollectionWide && method == .delete }

    package init(
        sequence: Int64, method: HTTPRequest.Method, isItem: Bool, id: String?, idIsNumber: Bool = false, contentType: String? = nil,
        body: [UInt8] = [], action: String? = nil, answer: JSONValue? = nil, isDelivered: Bool = false
    ) {
        self.sequence = sequence
        self.method = method
        self.isItem = isItem
        self.id = id?.isEmpty == true ? nil : id
        self.idIsNumber = idIsNumber
        self.contentType = contentType
        self.body = body
        self.action = action
        self.answer = answer
        self.isDelivered = isDelivered
    }

    /// The id as the representation writes it.
    var idValue: JSONValue? {
        id.map { id in idIsNumber ? JSONNumber(literal: id).map(JSONValue.number) ?? .string(id) : .string(id) }
    }
}

extension FoldedWrite {
    /// The state of its entity with this write, after those before it; one that is delivered does not count.
    func state(after earlier: EntityState?) -> EntityState? {
        if isDelivered { return earlier }
        return !isItem && !isCollectionWide && method == .post ? .pendingCreate : method.state(after: earlier)
    }
}

extension EntityState {
    /// The state by the writes to one entity in order of acceptance, as they are folded.
    package static func shown(by writes: [FoldedWrite]) -> EntityState? { writes.reduce(nil) { $1.state(after: $0) } }
}
