// The commented configuration that `rockpool init` writes (docs/reference/cli.md#init).
import RockpoolCore

/// A configuration for one API.
struct ProposedConfiguration {
    /// The URL of the API: its origin, and its path if it has one.
    let place: String
    let name: String
    let api: ProposedAPI
    var gateway = "127.0.0.1:7630"

    /// The text, as it was written and read again.
    /// - Parameter file: the name of the file in problems.
    /// - Throws: `ConfigurationError` if the proposal is no valid configuration, `CommandFailure` if the text would mean anything else than it.
    func checked(named file: String) throws -> String {
        let text = yaml
        let read = try ConfigurationSources(environment: [:]).load(yaml: text, named: file).configuration
        guard try read == ConfigurationSources(environment: [:]).load(yaml: document.json(), named: file).configuration else {
            throw CommandFailure(
                .failed, "the configuration for \(place) would not mean what is proposed; nothing is written".inOneLine)
        }
        return text
    }

    /// The proposal as values.
    private var document: ConfigDocument {
        .map([
            .init(
                "upstreams",
                .list([
                    .map([
                        .init("name", .text(name)), .init("origin", .text(place)), .init("gateway", .text(gateway)),
                        .init("policy", .text("offline-first")),
                        .init("routes", .list(stored.map { .map([.init("match", .text($0)), .init("store", .text("always"))]) })),
                        .init("resources", .list(api.resources.map(\.document))),
                    ])
                ]))
        ])
    }

    private var yaml: String {
        let head = [
            "# Rockpool for \(ForeignText.comment(place)), written by `rockpool init`. Check it: rockpool config check. Start it: rockpool serve.",
            "# Every key with its default: rockpool config show, or docs/reference/configuration.md.",
            "upstreams:",
        ]
        return (head + entry.map { "  " + $0 } + [""]).joined(separator: "\n")
    }

    /// The upstream as an entry of a list, in the column of its dash.
    var entry: [String] {
        var lines = [
            "- name: \(Self.quoted(name))",
            "  origin: \(Self.quoted(place))",
            "  gateway: \(Self.quoted(gateway))  # the address for clients that take another base URL",
            "  policy: offline-first  # reads are answered from the cache while the API is away",
        ]
        guard !api.resources.isEmpty else {
            return lines + noted + [
                "  # No resources were found: writes are queued and answered 202. Declare them for replies as of the API:",
                "  # resources:",
                "  #   - { collection: /v1/notes, item: \"/v1/notes/{id}\", offline_response: optimistic }",
            ]
        }
        if let source = api.source { lines.append("  # From \(ForeignText.comment(source)):") }
        lines += routes
        lines.append("  # queue: { squash: safe }  # unsent writes to one item become one, where one has the effect of all")
        lines.append("  resources:")
        for resource in api.resources { lines += Self.lines(of: resource, indentation: 4) }
        return lines + noted
    }

    /// Paths that the API forbids to store: without a route nothing of them could be read offline.
    private var stored: [String] { api.resources.filter(\.isNoStore).map(\.collection).flatMap { [$0, $0 + "/*"] } }

    private var routes: [String] {
        guard !stored.isEmpty else { return [] }
        return ["  # The API answers no-store. Without these lines nothing of it is readable while it is away.", "  routes:"]
            + stored.map { "    - { match: \(Self.quoted($0)), store: always }" }
    }

    private var noted: [String] {
        let notes = api.notes.prefix(20).map { "  # Not declared: \(ForeignText.comment($0))" }
        return notes + (api.notes.count > 20 ? ["  # and \(api.notes.count - 20) more"] : [])
    }

    /// The lines of one entry of `resources`, with its evidence as comments.
    static func lines(of resource: ProposedResource, indentation: Int) -> [String] {
        var members = ["- collection: \(quoted(resource.collection))", "  item: \(quoted(resource.item))"]
        // A format gives what is not said other defaults.
        if let profile = resource.profile { members.append("  profile: \(profile.rawValue)") }
        let says = resource.profile != nil
        if says || !resource.element.isEmpty { members.append("  element: \(quoted(resource.element))") }
        if says || !resource.items.isEmpty { members.append("  items: \(quoted(resource.items))  # the array in the collection's body") }
        if says || !resource.envelope.isEmpty { members.append("  envelope: \(quoted(resource.envelope))  # the object in an item's body") }
        if !resource.content.isEmpty { members.append("  content: \(quoted(resource.content))  # what writes carry alone") }
        if says || resource.id != "/id" { members.append("  id: \(quoted(resource.id))") }
        members.append("  version: \(resource.version == "etag" ? "etag" : quoted(resource.version))  # \(Self.words(ofVersion: resource))")
        if let updatedAt = resource.updatedAt { members.append("  updated_at: \(quoted(updatedAt))") }
        members.append(
            resource.isOptimistic
                ? "  offline_response: optimistic  # the API's own reply at once; accepted: 202"
                : "  # offline_response: optimistic  # the API's own reply at once, in place of 202")
        let space = String(repeating: " ", count: indentation)
        return (resource.evidence.map { "# \(ForeignText.comment($0))" } + members).map { space + $0 }
    }

    private static func words(ofVersion resource: ProposedResource) -> String {
        if resource.version != "etag" { return "the API sends no ETag; this member changes with each write" }
        return resource.lacksETag
            ? "the API sends none: changes are found by comparing. Better is the pointer of a member that changes with each write"
            : "or the pointer of a member that changes with each write"
    }

    /// A YAML scalar in double quotes.
    private static func quoted(_ text: String) -> String { ConfigDocument.text(text).json() }
}

/// Names and paths of an API in a file that is written for it: of a text that the API has chosen, only letters, digits and a few marks.
enum ForeignText {
    private static let longestComment = 200

    /// A text for a comment. Every other character is a question mark; no text ends the line, in whatever version of YAML.
    static func comment(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.prefix(longestComment).map { $0 == " " || isPlain($0) ? $0 : "?" }))
    }

    /// True for a text that may be a value: a path, or a pointer.
    static func isPlain(_ text: String) -> Bool { text.utf8.count <= 1000 && text.unicodeScalars.allSatisfy(isPlain) }

    private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
        guard scalar.value >= 0x80 else {
            return scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)
                || "-._~/:{}()[],;@+=%&?!$*#".unicodeScalars.contains(scalar)
        }
        switch scalar.properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter, .nonspacingMark, .spacingMark,
            .decimalNumber:
            return true
        default: return false
        }
    }
}
