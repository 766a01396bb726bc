// The commented configuration that `rockpool init` writes (docs/reference/cli.md#init).
import RockpoolCore

/// A configuration for one API.
struct ProposedConfiguration {
    let origin: OriginAddress
    let name: String
    let api: ProposedAPI

    var yaml: String {
        var lines = [
            "# Rockpool for \(origin.url), written by `rockpool init`. Check it: rockpool config check. Start it: rockpool serve.",
            "# Every key with its default: rockpool config show, or docs/reference/configuration.md.",
            "upstreams:",
            "  - name: \(Self.quoted(name))",
            "    origin: \(Self.quoted(origin.url))",
            "    gateway: 127.0.0.1:7630      # the address for clients that take another base URL",
            "    policy: offline-first        # reads are answered from the cache while the API is away",
        ]
        guard !api.resources.isEmpty else {
            return
                (lines + noted + [
                    "    # No resources were found: writes are queued and answered 202. Declare them for replies as of the API:",
                    "    # resources:",
                    "    #   - { collection: /v1/notes, item: \"/v1/notes/{id}\", offline_response: optimistic }", "",
                ]).joined(separator: "\n")
        }
        if let source = api.source { lines.append("    # From \(source):") }
        lines += routes
        lines.append("    resources:")
        for resource in api.resources { lines += Self.lines(of: resource, indentation: 6) }
        return (lines + noted + [""]).joined(separator: "\n")
    }

    /// Routes that store what the API forbids to store: without them nothing of it could be read offline.
    private var routes: [String] {
        let unstored = api.resources.filter(\.isNoStore).map(\.collection)
        guard !unstored.isEmpty else { return [] }
        return ["    # The API answers no-store. Without these lines nothing of it is readable while it is away.", "    routes:"]
            + unstored.flatMap { [$0, $0 + "/*"] }.map { "      - { match: \(Self.quoted($0)), store: always }" }
    }

    private var noted: [String] {
        let notes = api.notes.prefix(20).map { "    # Not declared: \($0)".inOneLine }
        return notes + (api.notes.count > 20 ? ["    # and \(api.notes.count - 20) more"] : [])
    }

    /// The lines of one entry of `resources`, with its evidence as comments.
    static func lines(of resource: ProposedResource, indentation: Int) -> [String] {
        var members = ["- collection: \(quoted(resource.collection))", "  item: \(quoted(resource.item))"]
        if !resource.items.isEmpty { members.append("  items: \(quoted(resource.items))  # the array in the collection's body") }
        if !resource.envelope.isEmpty { members.append("  envelope: \(quoted(resource.envelope))  # the object in an item's body") }
        if resource.id != "/id" { members.append("  id: \(quoted(resource.id))") }
        members.append("  version: etag  # or the pointer of a member that changes with each write")
        if let updatedAt = resource.updatedAt { members.append("  updated_at: \(quoted(updatedAt))") }
        members.append(
            resource.isOptimistic
                ? "  offline_response: optimistic  # the API's own reply at once; accepted: 202"
                : "  offline_response: accepted  # 202; optimistic: the API's own reply at once")
        let space = String(repeating: " ", count: indentation)
        return (resource.evidence.map { "# \($0)".inOneLine } + members).map { space + $0 }
    }

    /// A YAML scalar in double quotes, which JSON's are too.
    private static func quoted(_ text: String) -> String { String(decoding: JSONValue.string(text).serialized(), as: UTF8.self) }
}
