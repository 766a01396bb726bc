// Resources from an OpenAPI description (OpenAPI 2.0, 3.0 and 3.1; docs/reference/cli.md#init).
import Foundation
import RockpoolCore

/// Pairs of a collection and its items in a description: `/notes` and `/notes/{id}`.
struct OpenAPIReading {
    let document: JSONValue

    /// The paths of the description, each with the path of its server in front.
    private var paths: JSONObject? { document["paths"]?.object }

    /// True if the document has the form of a description.
    var isDescription: Bool { paths != nil && (document["openapi"] != nil || document["swagger"] != nil) }

    /// The path of the first server (`/v1` of `https://api.example.com/v1`), or `basePath`.
    private var base: String {
        let url = document["servers"]?.array?.first?["url"]?.string
        let path = url.flatMap { URLComponents(string: $0)?.percentEncodedPath } ?? document["basePath"]?.string ?? ""
        return path.hasSuffix("/") ? String(path.dropLast()) : path
    }

    func proposal() -> ProposedAPI {
        var found = ProposedAPI()
        guard let paths else { return found }
        for path in paths.names.sorted() {
            guard let (collection, parameter) = Self.split(path), let item = paths[path] else { continue }
            let full = base + collection
            guard !full.contains("{") else {
                found.notes.append("\(base)\(path): below another entity; a collection with a variable cannot be declared yet")
                continue
            }
            guard !collection.isEmpty, let list = paths[collection] ?? paths[collection + "/"] else { continue }
            found.add(resource(full, list: list, item: item, at: base + path, parameter: parameter))
        }
        return found
    }

    private func resource(
        _ collection: String, list: JSONValue, item: JSONValue, at path: String, parameter: String
    ) -> ProposedResource {
        var resource = ProposedResource(collection: collection, item: collection + "/{id}")
        let methods = ["get", "post", "put", "patch", "delete"]
        let (ofList, ofItem) = (methods.filter { list[$0] != nil }, methods.filter { item[$0] != nil })
        resource.evidence.append(
            "\(collection) (\(ofList.joined(separator: ", ").uppercased())), \(path) (\(ofItem.joined(separator: ", ").uppercased()))")
        if let schema = answer(of: list["get"]), type(of: schema) != "array" {
            let lists = members(of: schema).filter { type(of: resolved($0.1)) == "array" }
            if lists.count == 1 { resource.items = "/" + lists[0].0 }
        }
        var object = answer(of: item["get"]) ?? answer(of: item["patch"]) ?? answer(of: item["put"])
        var names = object.map { members(of: $0).map(\.0) } ?? []
        if ProposedResource.pointer(to: [parameter] + CommonMembers.ids, among: names) == nil, let outer = object {
            // The entity may lie in a member of its own: {"data": {"id": …}}.
            for (name, value) in members(of: outer) {
                let inner = members(of: resolved(value)).map(\.0)
                guard ProposedResource.pointer(to: [parameter] + CommonMembers.ids, among: inner) != nil else { continue }
                (resource.envelope, names, object) = ("/" + name, inner, resolved(value))
                break
            }
        }
        resource.id = ProposedResource.pointer(to: [parameter] + CommonMembers.ids, among: names) ?? "/id"
        resource.updatedAt = ProposedResource.pointer(to: CommonMembers.changeTimes, among: names)
        if !names.isEmpty { resource.evidence.append("members \(names.prefix(8).joined(separator: ", "))") }
        return resource
    }

    /// `/notes/{noteId}` → `/notes` and `noteId`; nil for other forms.
    private static func split(_ path: String) -> (collection: String, parameter: String)? {
        guard path.hasSuffix("}"), let open = path.lastIndex(of: "{"), let slash = path.lastIndex(of: "/"), path.index(after: slash) == open
        else { return nil }
        return (String(path[..<slash]), String(path[path.index(after: open)...].dropLast()))
    }

    /// The schema of a successful JSON answer.
    private func answer(of operation: JSONValue?) -> JSONValue? {
        guard let answers = operation?["responses"]?.object else { return nil }
        for status in answers.names.sorted() where status.hasPrefix("2") {
            guard let answer = answers[status].map(resolved) else { continue }
            if let schema = answer["schema"] { return resolved(schema) }
            guard let content = answer["content"]?.object else { continue }
            for type in content.names where type.contains("json") {
                if let schema = content[type]?["schema"] { return resolved(schema) }
            }
        }
        return nil
    }

    private func type(of schema: JSONValue) -> String? {
        schema["type"]?.string ?? schema["type"]?.array?.compactMap(\.string).first { $0 != "null" }
            ?? (schema["items"] == nil ? nil : "array")
    }

    /// The members of an object's schema, those of `allOf` included: at most 256, of at most 64 schemas, which may name each other.
    private func members(of schema: JSONValue) -> [(String, JSONValue)] {
        var found: [(String, JSONValue)] = []
        var (waiting, seen) = ([schema], 0)
        while let next = waiting.popLast(), seen < 64, found.count < 256 {
            seen += 1
            if let object = next["properties"]?.object {
                found += object.names.prefix(256).compactMap { name in object[name].map { (name, $0) } }
            }
            waiting += (next["allOf"]?.array ?? []).prefix(64).reversed().map(resolved)
        }
        return found
    }

    /// Follows local references: `#/components/schemas/Note`.
    private func resolved(_ value: JSONValue) -> JSONValue {
        var value = value
        for _ in 0..<16 {
            guard let reference = value["$ref"]?.string, reference.hasPrefix("#/") else { return value }
            var target: JSONValue? = document
            for part in reference.dropFirst(2).split(separator: "/") {
                target = target?[String(part).replacing("~1", with: "/").replacing("~0", with: "~")]
            }
            guard let target else { return value }
            value = target
        }
        return value
    }
}
