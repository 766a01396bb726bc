// Three states of an array whose elements have names (outbox.md §1.6 `keyed:id`).
import OrderedCollections

struct KeyedLists {
    typealias Elements = OrderedDictionary<JSONValue, JSONValue>

    let base, mine, theirs: Elements

    /// Nil unless mine and theirs are arrays, and so is the base where there is one, each of whose elements has an id of its own.
    init?(base: JSONValue?, mine: JSONValue?, theirs: JSONValue?, id: JSONPointer) {
        guard let base = base == nil ? [:] : Self.elements(base, id), let mine = Self.elements(mine, id),
            let theirs = Self.elements(theirs, id)
        else { return nil }
        (self.base, self.mine, self.theirs) = (base, mine, theirs)
    }

    /// Every key. The order is theirs, and mine where only I changed it; what the other side added comes after, what both removed last.
    var order: [JSONValue] {
        let isMine = keepsOrder(theirs) && !keepsOrder(mine)
        let (leading, following) = isMine ? (mine, theirs) : (theirs, mine)
        return Array(OrderedSet(leading.keys).union(following.keys).union(base.keys))
    }

    private func keepsOrder(_ side: Elements) -> Bool {
        side.keys.filter { base[$0] != nil } == base.keys.filter { side[$0] != nil }
    }

    private static func elements(_ value: JSONValue?, _ id: JSONPointer) -> Elements? {
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
