// Three states of an array with identified elements (docs/outbox.md#fields `keyed:id`).
import OrderedCollections

struct KeyedLists {
    typealias Elements = OrderedDictionary<JSONValue, JSONValue>

    let base, mine, theirs: Elements

    /// Nil unless mine, theirs, and the base where there is one, are arrays in which each element has a unique id.
    init?(base: JSONValue?, mine: JSONValue?, theirs: JSONValue?, id: JSONPointer) {
        guard let base = base == nil ? [:] : Self.elements(of: base, id: id), let mine = Self.elements(of: mine, id: id),
            let theirs = Self.elements(of: theirs, id: id)
        else { return nil }
        (self.base, self.mine, self.theirs) = (base, mine, theirs)
    }

    /// All keys. The order is that of theirs, or of mine where only mine changed it; the other side's additions follow, then the keys that
    /// both removed.
    var order: [JSONValue] {
        let isMine = keepsOrder(theirs) && !keepsOrder(mine)
        let (leading, following) = isMine ? (mine, theirs) : (theirs, mine)
        return Array(OrderedSet(leading.keys).union(following.keys).union(base.keys))
    }

    private func keepsOrder(_ side: Elements) -> Bool {
        side.keys.filter { base[$0] != nil } == base.keys.filter { side[$0] != nil }
    }

    private static func elements(of value: JSONValue?, id: JSONPointer) -> Elements? {
        guard let array = value?.array else { return nil }
        var elements: Elements = [:]
        for element in array {
            guard let key = id.get(in: element), key.identifier != nil, elements.updateValue(element, forKey: key) == nil else {
                return nil
            }
        }
        return elements
    }
}
