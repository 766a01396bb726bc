// The path of an item as one of a collection: what may stand before and after the id (docs/outbox.md#learning).

/// One way to read a path as that of an item.
struct ItemPlace: Hashable, Sendable {
    /// The longest path in bytes, and the most segments, of which anything is learned.
    private static let length = 512
    private static let segments = 16
    /// The most letters of a suffix after its dot: `.json`.
    private static let suffixLength = 5

    /// The path of the collection, without a slash at its end.
    let collection: String
    /// The template of items.
    let item: String
    /// The id, decoded.
    let id: String

    /// Returns the ways to read a path, the likeliest first.
    static func all(of path: String) -> [ItemPlace] {
        let endsInSlash = path.count > 1 && path.hasSuffix("/")
        let whole = endsInSlash ? path.dropLast() : path[...]
        guard let slash = whole.lastIndex(of: "/") else { return [] }
        let (head, last) = (String(whole[..<slash]), whole[whole.index(after: slash)...])
        guard !last.isEmpty else { return [] }
        var places: [ItemPlace] = []
        if !head.isEmpty {
            places.append(ItemPlace(collection: head, item: "\(head)/{id}" + (endsInSlash ? "/" : ""), id: last.keyText(isKey: false)))
        }
        guard !endsInSlash else { return places }
        if !head.isEmpty, let dot = last.lastIndex(of: "."), dot > last.startIndex, isSuffix(last[last.index(after: dot)...]) {
            let (stem, suffix) = (last[..<dot].keyText(isKey: false), last[dot...])
            places += [head + suffix, head].map { ItemPlace(collection: $0, item: "\(head)/{id}\(suffix)", id: stem) }
        }
        if last.hasSuffix(")"), let open = last.firstIndex(of: "("), open > last.startIndex {
            let key = last[last.index(after: open)...].dropLast().replacing("%27", with: "'")
            let variable = key.hasPrefix("'") ? "'{id}'" : "{id}"
            let collection = "\(head)/\(last[..<open])"
            places.append(ItemPlace(collection: collection, item: "\(collection)(\(variable))", id: key.keyText(isKey: true)))
        }
        return places.filter { !$0.id.isEmpty }
    }

    /// The template of the items of a collection of which no item was read, as paths usually are.
    static func usual(in collection: String) -> String {
        guard !collection.hasSuffix("/") else { return "\(collection){id}/" }
        let start = collection.lastIndex(of: "/") ?? collection.startIndex
        guard let dot = collection[start...].lastIndex(of: "."), isSuffix(collection[collection.index(after: dot)...]) else {
            return "\(collection)/{id}"
        }
        return "\(collection[..<dot])/{id}\(collection[dot...])"
    }

    /// True if `list` ends as the path above the item does, with more before its end: `/projects/4/tasks` of `/tasks/9`.
    func isShallow(in list: String) -> Bool {
        guard let slash = collection.lastIndex(of: "/"), list.hasPrefix(collection[..<slash] + "/"),
            list.hasSuffix(collection[slash...])
        else { return false }
        return list.pathSegmentCount >= collection.pathSegmentCount + 2
    }

    /// The path of which something is learned, in the spelling that all equivalent ones share; nil for one that is too long, or that could not
    /// be written as a template.
    static func plain(_ path: String) -> String? {
        guard path.utf8.count <= length, path.hasPrefix("/"), path != "/", !path.contains(where: { "{}*".contains($0) }) else { return nil }
        let plain = path.canonicalEscapes
        let parts = plain[...].pathSegments.withoutTrailingSlash
        guard parts.count <= segments, parts.allSatisfy({ !$0.isEmpty && $0 != "." && $0 != ".." }) else { return nil }
        return plain
    }

    private static func isSuffix(_ text: Substring) -> Bool {
        (2...suffixLength).contains(text.utf8.count) && text.utf8.allSatisfy(FieldByte.isLetter)
    }
}

extension String {
    fileprivate var pathSegmentCount: Int { count { $0 == "/" } }

    /// A path without the slash at its end.
    var withoutSlash: String { count > 1 && hasSuffix("/") ? String(dropLast()) : self }
}
