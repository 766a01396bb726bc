// Resources from observed responses: a HAR file, or the collections that were fetched (HAR 1.2; docs/reference/cli.md#init).
import Foundation
import RockpoolCore

/// Observed GET responses with JSON bodies, by path.
struct SampleReading {
    private var bodies: [String: JSONValue] = [:]
    /// Paths that were requested with any method and status.
    private var paths: Set<String> = []
    /// Paths whose responses must not be stored.
    private var unstored: Set<String> = []
    /// Paths whose responses had no ETag.
    private var untagged: Set<String> = []
    /// Paths that were not found.
    private var missing: Set<String> = []

    /// Notes one exchange.
    /// - Parameter hasETag: nil where it is not known.
    mutating func note(method: String, path: String, status: Int, body: JSONValue?, cacheControl: String = "", hasETag: Bool? = nil) {
        let path = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
        paths.insert(path)
        if method == "GET", [404, 405, 410].contains(status) { missing.insert(path) }
        if method == "GET", (200..<300).contains(status), hasETag == false { untagged.insert(path) }
        if method == "GET", cacheControl.lowercased().contains("no-store") { unstored.insert(path) }
        if method == "GET", (200..<300).contains(status), let body { bodies[path] = body }
    }

    /// Notes every exchange of a HAR document with this origin. Returns their number; nil if it is no HAR.
    mutating func note(har: JSONValue, origin: OriginAddress) -> Int? {
        guard let entries = har["log"]?["entries"]?.array else { return nil }
        var count = 0
        for entry in entries {
            guard let url = entry["request"]?["url"]?.string.flatMap({ URLComponents(string: $0) }),
                url.host?.lowercased() == origin.host, (url.port ?? origin.scheme.defaultPort) == origin.port
            else { continue }
            count += 1
            let (content, fields) = (entry["response"]?["content"], entry["response"]?["headers"]?.array)
            func field(_ name: String) -> String? { fields?.first { $0["name"]?.string?.lowercased() == name }?["value"]?.string }
            let text = content?["text"]?.string.flatMap { text in
                content?["encoding"]?.string == "base64" ? Data(base64Encoded: text).map { Array($0) } : Array(text.utf8)
            }
            note(
                method: entry["request"]?["method"]?.string ?? "GET", path: url.percentEncodedPath,
                status: entry["response"]?["status"]?.integer.map { Int(clamping: $0) } ?? 0,
                body: text.flatMap { try? JSONValue.parse($0) },
                cacheControl: field("cache-control") ?? "", hasETag: fields.map { _ in field("etag") != nil })
        }
        return count
    }

    /// A collection is a path whose body is, or holds, an array of objects with ids.
    func proposal() -> ProposedAPI {
        var found = ProposedAPI()
        for (path, body) in bodies.sorted(by: { $0.key < $1.key }) {
            guard let (pointer, elements) = Self.list(in: body) else { continue }
            let names = elements.compactMap { $0.object?.names }.first ?? []
            guard let id = ProposedResource.pointer(to: CommonMembers.ids, among: names) else {
                found.notes.append(
                    "GET \(path): a list whose entries have no member that looks like an id (\(names.joined(separator: ", ")))")
                continue
            }
            var resource = ProposedResource(collection: path, item: path + "/{id}", items: pointer, id: id)
            resource.updatedAt = ProposedResource.pointer(to: CommonMembers.changeTimes, among: names)
            let place = pointer.isEmpty ? "" : " at \(pointer)"
            resource.evidence.append("GET \(path): a list\(place), members \(names.prefix(8).joined(separator: ", "))")
            resource.isNoStore = unstored.contains { $0 == path || Self.isItem($0, of: path) }
            if let item = bodies.keys.sorted().first(where: { Self.isItem($0, of: path) }), let body = bodies[item] {
                resource.envelope = Self.envelope(in: body, idMember: String(id.dropFirst()))
                resource.evidence.append("GET \(item): one entry\(resource.envelope.isEmpty ? "" : " at \(resource.envelope)")")
                resource.lacksETag = untagged.contains(item)
                if resource.lacksETag { resource.version = ProposedResource.pointer(to: CommonMembers.versions, among: names) ?? "etag" }
            } else if let item = missing.sorted().first(where: { Self.isItem($0, of: path) }) {
                // A reply made up for a path that the API does not have would be wrong.
                resource.isOptimistic = false
                resource.evidence.append("GET \(item): not found; if entries have another path, say so in item, and take optimistic")
            } else if !pointer.isEmpty {
                // A wrapped list: its entries may be wrapped as well, and a reply made up without the wrapper would be wrong.
                resource.isOptimistic = false
                resource.evidence.append("No entry was read: after one, say where its object lies (envelope), and take optimistic")
            }
            found.add(resource)
        }
        return found
    }

    /// The path of an entry of a collection; nil if it has no member that looks like an id.
    static func path(of entry: JSONValue, in collection: String) -> String? {
        guard let pointer = ProposedResource.pointer(to: CommonMembers.ids, among: entry.object?.names ?? []) else { return nil }
        let id = entry[String(pointer.dropFirst())]
        guard let text = id?.string ?? id?.integer.map({ "\($0)" }), !text.isEmpty else { return nil }
        let plain = CharacterSet(charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
        return text.addingPercentEncoding(withAllowedCharacters: plain).map { collection + "/" + $0 }
    }

    private static func isItem(_ path: String, of collection: String) -> Bool {
        path.hasPrefix(collection + "/") && !path.dropFirst(collection.count + 1).contains("/")
    }

    /// The array of objects in a body, and the pointer to it.
    static func list(in body: JSONValue) -> (pointer: String, elements: [JSONValue])? {
        func isList(_ value: JSONValue) -> Bool { value.array.map { !$0.isEmpty && $0.allSatisfy { $0.object != nil } } ?? false }
        if isList(body) { return ("", body.array ?? []) }
        guard let object = body.object else { return nil }
        let lists = object.names.filter { object[$0].map(isList) ?? false }
        guard lists.count == 1 else { return nil }
        return ("/" + lists[0].replacing("~", with: "~0").replacing("/", with: "~1"), object[lists[0]]?.array ?? [])
    }

    /// The pointer to the object with the id in the body of an item.
    static func envelope(in body: JSONValue, idMember: String) -> String {
        guard let object = body.object, object[idMember] == nil else { return "" }
        let inner = object.names.first { object[$0]?.object?[idMember] != nil }
        return inner.map { "/" + $0.replacing("~", with: "~0").replacing("/", with: "~1") } ?? ""
    }
}
