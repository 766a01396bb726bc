// The type that an API's ids have in JSON, as the client's copies and the answers to creates show it (docs/outbox.md#local-ids).
import HTTPTypes
import RockpoolCore
import RockpoolStore

extension EntryLookup {
    /// The maximum number of copies that are searched for ids.
    private static let idLimit = 4

    /// Returns the id and the URL of the item that a create has made, as `ServerID.inAnswer`. Where `Location` alone shows the id, it has
    /// the type that the ids of the collection have.
    /// - Parameter json: the body of the answer; nil if it is no JSON.
    func created(
        by head: ResponseHead, json: JSONValue?, to request: RequestHead, resource: Resource?, partition: String?
    ) async -> ServerMapping? {
        let text = ServerID.inAnswer(head, json: json, to: request, resource: resource)
        let number = ServerID.inAnswer(head, json: json, to: request, resource: resource, idsAreNumbers: true)
        guard let resource else { return text }
        guard text != number else {
            if let text { data.localIDs.note(areNumbers: text.id.isNumber, at: resource.idPlace(at: request.origin)) }
            return text
        }
        return await idsAreNumbers(at: request, resource: resource, partition: partition) == true ? number : text
    }

    /// True if the ids of a resource are numbers; nil if nothing has shown them. The newest known copies tell: those of the list, else those of
    /// other lists and of items, else what was learned.
    /// - Parameter request: a create.
    func idsAreNumbers(at request: RequestHead, resource: Resource, partition: String?) async -> Bool? {
        if let learned = resource.learned, learned.ids != .number { return false }
        let place = resource.idPlace(at: request.origin)
        if let known = data.localIDs.areNumbers(at: place) { return known }
        let readable = StoragePartition.readable(by: partition)
        var found = await listedIDsAreNumbers(at: request, resource: resource, in: readable)
        if found == nil { found = await storedIDsAreNumbers(at: request.origin, resource: resource, in: readable) }
        if let found { data.localIDs.note(areNumbers: found, at: place) }
        // Of a list without entries its description has told it.
        return found ?? resource.learned.map { $0.ids == .number }
    }

    private func listedIDsAreNumbers(at request: RequestHead, resource: Resource, in readable: [StoragePartition]) async -> Bool? {
        let path = request.path.hasSuffix("/") ? String(request.path.dropLast()) : request.path
        let collection = request.origin.url + path
        for url in [collection, collection + "/"] {
            if let known = await idsAreNumbers(at: url, in: readable, resource: resource) { return known }
        }
        return nil
    }

    private func storedIDsAreNumbers(at origin: OriginAddress, resource: Resource, in readable: [StoragePartition]) async -> Bool? {
        for partition in readable {
            for prefix in resource.pathPrefixes {
                let urls = ((try? await cache.urls(prefix: origin.url + prefix, in: partition)) ?? []).lazy
                    .filter { resource.shows($0.dropFirst(origin.url.count)) }
                for url in urls.prefix(Self.idLimit) {
                    let path = String(url.prefix { $0 != "?" })
                    if let known = await idsAreNumbers(at: path, in: readable, resource: resource) { return known }
                }
            }
        }
        return nil
    }

    private func idsAreNumbers(at url: String, in readable: [StoragePartition], resource: Resource) async -> Bool? {
        for copy in (try? await cache.copies(ofPath: url, in: readable, limit: Self.idLimit)) ?? [] where copy.response.head.status == 200 {
            guard let bytes = try? await content(of: copy, limit: OwnWriteEffects.representationLimit),
                let known = (try? JSONValue.parse(bytes)).flatMap({ resource.idsAreNumbers(in: $0) })
            else { continue }
            return known
        }
        return nil
    }
}

extension Resource {
    /// What names the ids of its items among those of all origins.
    fileprivate func idPlace(at origin: OriginAddress) -> String { "\(origin.url)\(label) \(id)" }
}
