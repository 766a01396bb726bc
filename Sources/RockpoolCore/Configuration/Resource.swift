// The description of one kind of entity: its paths, the locations of its id and version (docs/reference/configuration.md#resources), its
// format, and its batches.

/// A kind of entity of an upstream. Offline writes and merges use these declarations.
package struct Resource: Hashable, Sendable {
    package enum OfflineResponse: String, CaseIterable, Sendable, Codable { case accepted, optimistic }
    package enum Conflict: String, CaseIterable, Sendable, Codable {
        case lastWriteWins = "last-write-wins"
        case serverWins = "server-wins"
        case clientWins = "client-wins"
        case fieldMerge = "field-merge"
        case keepBoth = "keep-both"
        case ask
    }

    /// Empty for a single item.
    package var collection: String
    /// The format of the API; nil for none of those that are known.
    package var profile: Profile?
    package var item: String?
    package var items: String
    /// The object within an element of the collection's array.
    package var element = ""
    package var envelope: String
    /// The object within an item's object that writes may carry alone: `/data` of `{"id": 7, "data": {…}}`.
    package var content = ""
    package var id: String
    /// The member of an entry of a list that shows clients what the entry waits for; nil for none. The upstream never gets it.
    package var mark: String?
    /// `etag` or a JSON Pointer.
    package var version: String
    package var updatedAt: String?
    /// nil: as the upstream answered before, if that answer carried nothing, else 202.
    package var offlineResponse: OfflineResponse?
    package var conflict: Conflict
    /// JSON Pointer → field strategy (docs/reference/behaviour.md#conflicts).
    package var fields: [String: String]
    package var delta: Delta?
    package var sync: Sync?
    /// The condition under which an answer to a write is a success; nil: every 2xx. A route's rule comes first.
    package var success: SuccessRule?
    /// What is known of it if it was learned from traffic; nil for a declared one.
    package var learned: LearnedTraits?
    /// What the upstream was seen to make of members that a PUT leaves out.
    package var omitted = OmittedMembers()

    package init(
        collection: String, item: String? = nil, items: String = "", envelope: String = "", id: String = "/id", version: String = "etag",
        updatedAt: String? = nil, offlineResponse: OfflineResponse? = nil, conflict: Conflict = .fieldMerge,
        fields: [String: String] = [:], delta: Delta? = nil, sync: Sync? = nil
    ) {
        self.collection = collection
        self.item = item
        self.items = items
        self.envelope = envelope
        self.id = id
        self.version = version
        self.updatedAt = updatedAt
        self.offlineResponse = offlineResponse
        self.conflict = conflict
        self.fields = fields
        self.delta = delta
        self.sync = sync
    }

    /// The request for changes since a cursor (docs/outbox.md#delta-pull).
    package struct Delta: Hashable, Sendable {
        package var query: String
        package var cursor: String
        package var deleted: String?
        package var every: TimeSpan
        package var fullEvery: TimeSpan

        package init(
            query: String, cursor: String, deleted: String? = nil, every: TimeSpan = .minutes(5), fullEvery: TimeSpan = .hours(24)
        ) {
            self.query = query
            self.cursor = cursor
            self.deleted = deleted
            self.every = every
            self.fullEvery = fullEvery
        }
    }
    /// Endpoints of an API that accepts writes in batches, or returns changes since its own cursor (docs/guide/sync.md).
    package struct Sync: Hashable, Sendable {
        /// Path that accepts `{"operations": […]}`; nil sends each write separately.
        package var push: String?
        /// Path and query with `{cursor}`; nil pulls by `delta`.
        package var pull: String?
        /// The form of requests to `push` and of their answers.
        package var batch = BatchFormat()
        /// JSON Pointers into a pull response: changed items, deleted items, the next cursor, and a flag for more pages.
        package var items: String
        package var tombstones: String
        package var cursor: String
        package var more: String

        package init(
            push: String? = nil, pull: String? = nil, items: String = "/changes", tombstones: String = "/tombstones",
            cursor: String = "/cursor", more: String = "/hasMore"
        ) {
            self.push = push
            self.pull = pull
            self.items = items
            self.tombstones = tombstones
            self.cursor = cursor
            self.more = more
        }
    }
}

// MARK: - Formats

/// A format of APIs (docs/reference/configuration.md#profiles).
package enum Profile: String, CaseIterable, Sendable, Codable {
    /// JSON:API 1.1.
    case jsonapi
    /// JSON Hypertext Application Language (draft-kelly-json-hal).
    case hal
    /// HL7 FHIR, as JSON.
    case fhir
    /// OData 4.
    case odata
    /// PostgREST.
    case postgrest

    /// The media type of representations.
    package var mediaType: String {
        switch self {
        case .jsonapi: "application/vnd.api+json"
        case .hal: "application/hal+json"
        case .fhir: "application/fhir+json"
        case .odata, .postgrest: "application/json"
        }
    }

    /// Gives a resource, of which only the collection is known, what the format says.
    package func describe(_ resource: inout Resource) {
        resource.profile = self
        let path = resource.collection.hasSuffix("/") ? String(resource.collection.dropLast()) : resource.collection
        if !resource.isSingleton { resource.item = path + "/{id}" }
        switch self {
        case .jsonapi:
            resource.items = "/data"
            resource.envelope = "/data"
        case .hal:
            resource.items = "/_embedded/" + (path.split(separator: "/").last ?? "items")
        case .fhir:
            resource.items = "/entry"
            resource.element = "/resource"
            resource.version = "/meta/versionId"
            resource.updatedAt = "/meta/lastUpdated"
        case .odata:
            resource.items = "/value"
            resource.id = "/ID"
            if !resource.isSingleton { resource.item = path + "({id})" }
        case .postgrest:
            if !resource.isSingleton { resource.item = path + "?id=eq.{id}" }
        }
    }
}

// MARK: - Batches

/// Templates of a batch request, and pointers into its response (docs/reference/configuration.md#sync, `sync.batch`).
package struct BatchFormat: Hashable, Sendable {
    /// The whole body, with `{operations}`.
    package var body = #"{"operations":"{operations}"}"#
    /// One operation.
    package var operation =
        #"{"id":"{id}","idempotencyKey":"{idempotencyKey}","method":"{method}","entity":"{target}","#
        + #""ifMatch":"{ifMatch}","ifNoneMatch":"{ifNoneMatch}","contentType":"{contentType}","body":"{body}"}"#
    /// The array of results.
    package var results = "/results"
    /// Within a result: the operation's id, its status, its header fields, and the body of its answer.
    package var id = "/id"
    package var status = "/status"
    package var headers = "/headers"
    package var answer = "/body"

    package init() {}

    /// The names that `operation` may have.
    package static let names: Set<String> = [
        "id", "idempotencyKey", "method", "target", "url", "ifMatch", "ifNoneMatch", "contentType", "body",
    ]

    /// What is wrong with it, by key; empty if it can be used.
    package var faults: [(key: String, fault: String)] {
        var faults: [(key: String, fault: String)] = []
        if JSONTemplate(body)?.names != ["operations"] { faults.append(("body", "is JSON with the string \"{operations}\"")) }
        guard let names = JSONTemplate(operation)?.names else { return faults + [("operation", "is JSON with strings such as \"{id}\"")] }
        if let unknown = names.subtracting(Self.names).min() {
            faults.append(("operation", "{\(unknown)} is none of \(Self.names.sorted().joined(separator: ", "))"))
        }
        if !names.isSuperset(of: ["id", "method"]) || names.isDisjoint(with: ["target", "url"]) {
            faults.append(("operation", "needs {id}, {method} and {target} or {url}"))
        }
        return faults
    }
}

/// A JSON value in whose strings `{name}` stands for a value (docs/outbox.md#batch-push).
package struct JSONTemplate: Hashable, Sendable {
    private let value: JSONValue

    /// Nil unless the text is JSON.
    package init?(_ text: String) {
        guard let value = try? JSONValue.parse(Array(text.utf8)) else { return nil }
        self.value = value
    }

    /// The names in it.
    package var names: Set<String> { Self.names(in: value) }

    /// Returns the document. A string that is one name becomes its value, of any type; a member or an element whose value is missing is left out.
    package func filled(with values: [String: JSONValue]) -> JSONValue { Self.filled(value, with: values) ?? .null }

    private static func filled(_ value: JSONValue, with values: [String: JSONValue]) -> JSONValue? {
        switch value {
        case .object(let members):
            return .object(JSONObject(members.compactMap { name, value in filled(value, with: values).map { (name, $0) } }))
        case .array(let elements): return .array(elements.compactMap { filled($0, with: values) })
        case .string(let text):
            let pieces = pieces(of: text)
            if pieces.count == 1, pieces[0].isName { return values[String(pieces[0].text)] }
            let texts = pieces.map { piece in
                guard piece.isName else { return String(piece.text) }
                return values[String(piece.text)].map { $0.string ?? String(decoding: $0.serialized(), as: UTF8.self) } ?? ""
            }
            return .string(texts.joined())
        case .null, .bool, .number: return value
        }
    }

    private static func names(in value: JSONValue) -> Set<String> {
        switch value {
        case .object(let members): members.reduce(into: []) { $0.formUnion(names(in: $1.value)) }
        case .array(let elements): elements.reduce(into: []) { $0.formUnion(names(in: $1)) }
        case .string(let text): Set(pieces(of: text).filter(\.isName).map { String($0.text) })
        case .null, .bool, .number: []
        }
    }

    /// The texts and the names of a string, in their order.
    private static func pieces(of text: String) -> [(text: Substring, isName: Bool)] {
        var pieces: [(text: Substring, isName: Bool)] = []
        var rest = text[...]
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            if open > rest.startIndex { pieces.append((rest[..<open], false)) }
            pieces.append((rest[rest.index(after: open)..<close], true))
            rest = rest[rest.index(after: close)...]
        }
        if !rest.isEmpty { pieces.append((rest, false)) }
        return pieces
    }
}
