// The URLs whose copies a write makes out of date (docs/outbox.md#effects).
import HTTPTypes
import RockpoolCore

/// The absolute URLs, without query unless the request itself has one, that an answered write concerns.
struct OwnWritePlaces {
    /// The item that the write created; nil for another write.
    let created: ServerMapping?
    /// The URL under which the item is read; nil for a write to a collection that created none, and for a row, which is read as a list.
    let item: String?
    /// Every spelling of the item's URL.
    let items: [String]
    /// The URLs of the lists that contain the item.
    let lists: [String]
    /// True if the write addresses a collection itself and creates nothing.
    let isCollectionWide: Bool
    /// Further URLs of the exchange: an action's path, the answer's `Content-Location`, the object of an upload, the destination of a copy.
    let others: [String]
    /// Prefixes of URLs, each ending in a slash, whose copies are no longer what their validators name.
    let trees: [String]
    /// The prefix of the URLs of what was deleted with its item; nil for any other write.
    let deleted: String?
    /// The write, if it is one to an undeclared path; those that list a declared resource are known.
    private let undeclared: RequestHead?

    init(_ write: AnsweredWrite) {
        let (request, origin) = (write.request, write.request.origin.url)
        created = write.created
        guard let entity = write.entity, entity.resource != nil else {
            item = nil
            isCollectionWide = false
            items = [request.url]
            lists = []
            let replaced = WebDAVEffect.destination(of: request).map { FilePath($0) }
            let copied = replaced?.targets.map { origin + $0 } ?? []
            others = [created?.url, Invalidation.uploadedObject(of: request)].compactMap(\.self) + copied
            trees = copied.filter { $0.hasSuffix("/") }
            deleted = nil
            undeclared = request
            return
        }
        undeclared = nil
        let isGone = request.method == .delete && entity.action == nil && [.applied, .absent].contains(write.outcome)
        deleted = isGone ? entity.stem.map { origin + $0 + "/" } : nil
        trees = [deleted].compactMap(\.self)
        if entity.resource?.namesRows == true {
            item = nil
        } else if let created {
            item = created.url
        } else if entity.isItem {
            item = entity.action == nil ? origin + request.path : origin + entity.target
        } else {
            item = nil
        }
        isCollectionWide = !entity.isItem && created == nil && request.method != .post
        let slash = { (url: String) in url.hasSuffix("/") ? [url, String(url.dropLast())] : [url, url + "/"] }
        items = item.map(slash) ?? []
        lists = entity.collection.map { slash(origin + $0) } ?? []
        others = entity.action == nil ? [] : [origin + request.path]
    }

    /// The URLs of all lists that may show the write.
    func shown(in routes: RouteTable) -> [String] { lists + near(in: routes) }

    /// Returns the URLs that may show or list what a write to an undeclared path has changed: of the paths above it, and of its target without
    /// query or with the other end. Those of a declared resource are left out, because their copies are bases of writes, and those of buckets,
    /// because their lists show the write.
    func near(in routes: RouteTable) -> [String] {
        guard let request = undeclared else { return [] }
        let changed = [request.path] + [WebDAVEffect.destination(of: request)].compactMap(\.self)
        let targets = Set(changed.flatMap { path in Self.spellings(above: path.prefix { $0 != "?" }) }).subtracting([request.target])
        return targets.map { request.at($0) }.filter { read in
            let plan = routes.plan(for: read)
            return plan.entity?.resource == nil && plan.route?.kind != .s3
        }.map(\.url)
    }

    /// The path and those above it, each with and without a slash at its end: at most 64.
    private static func spellings(above path: Substring) -> [String] {
        var (rest, found) = (path, [String]())
        while found.count < 128 {
            while rest.hasSuffix("/") { rest.removeLast() }
            guard let slash = rest.lastIndex(of: "/") else { break }
            found += [String(rest), rest + "/"]
            rest = rest[..<slash]
        }
        return found + ["/"]
    }
}

extension RequestHead {
    /// The same origin at another path.
    func at(_ path: String) -> RequestHead { RequestHead(method: .get, origin: origin, target: path) }
}

extension ResponseHead {
    /// True if the response forbids that its body is stored (RFC 9111 §5.2.2.5).
    var isNotStored: Bool { CacheControl(fields).noStore }
}

extension HTTPFields {
    /// The fields of a copy whose body was made here from one with these fields. How long that one was fresh says nothing about it.
    var ofComputedCopy: HTTPFields {
        var fields = ofComputedBody
        for name in [HTTPField.Name.age, .expires] { fields[name] = nil }
        return fields
    }

    /// Takes the fields that describe written content: they replace the language and disposition of the former one, and the metadata of an
    /// object of S3.
    mutating func describe(_ content: HTTPFields) {
        let type = self[.contentType]
        self = HTTPFields(
            filter { field in
                ![.contentType, .contentLanguage, .contentDisposition].contains(field.name)
                    && !field.name.canonicalName.hasPrefix("x-amz-meta-")
            } + content)
        self[.contentType] = self[.contentType] ?? type
    }
}
