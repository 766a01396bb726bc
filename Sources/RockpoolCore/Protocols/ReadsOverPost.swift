// Questions that APIs are asked by POST, and statements to databases (docs/outbox.md#never-queued).

/// A request that asks, or that needs its answer as every program of its API expects it.
enum Question {
    // MARK: - The path

    /// True if a POST to this path asks.
    static func isAsked(at path: String) -> Bool {
        let segments = path.split(separator: "/").suffix(2)
        guard let name = segments.last else { return false }
        let (last, stem) = (name.lowercased(), (name.withoutFormat ?? name).lowercased())
        // Elasticsearch has variants below a question, such as `_search/scroll`.
        if lastSegments.contains(stem) || segments.contains(where: { $0.hasPrefix("_") && lastSegments.contains($0.lowercased()) }) {
            return true
        }
        if verbs.contains(where: { last.hasSuffix($0) || stem.hasSuffix($0) }) { return true }
        if last.hasSuffix(".list") || last.hasSuffix(".get") || beginsWithGet(name) { return true }
        return path.hasSuffix("/chat/completions") || path.hasSuffix("/v1/completions") || Array(path.utf8).holds("/-/npm/v1/security/")
    }

    /// True if a POST to this path is a batch, whose answer says what has become of each part.
    static func isBatch(at path: String) -> Bool {
        path.split(separator: "/").last.map { batches.contains(($0.withoutFormat ?? $0).lowercased()) } ?? false
    }

    /// Last segments: writes in bulk of Elasticsearch, CouchDB and OData.
    private static let batches: Set<String> = ["_bulk", "_bulk_docs", "_delete_by_query", "_update_by_query", "_sql", "$batch"]

    /// Last segments: queries and searches in general; searches of Elasticsearch and OpenSearch, CouchDB and OData; embeddings of language
    /// models.
    private static let lastSegments: Set<String> = [
        "query", "query_range", "query_exemplars", "range", "search", "msearch", "multi-search", "multi_search",
        "_search", "_msearch", "_count", "_mget", "_query", "_find", "_explain", "_all_docs", "_bulk_get", "_revs_diff", "_changes",
        "$query", "embeddings",
    ]

    /// Ends of last segments: questions among the custom methods of Google's APIs and of those in their style.
    private static let verbs = [
        ":runquery", ":runaggregationquery", ":batchget", ":search", ":query", ":predict", ":generatecontent", ":streamgeneratecontent",
        ":counttokens", ":embedcontent", ".search", ".query",
    ]

    // MARK: - Names of methods

    /// True if the name of a method says that it reads: `query`, `torrent-get`, `core.get_status`, `users.list`, `DescribeInstances`.
    static func isReading(_ name: String) -> Bool {
        let end = name.split { $0 == "." || $0 == ":" || $0 == "/" }.last ?? ""
        let last = end.lowercased()
        if readingVerbs.contains(last) || beginsWithGet(end) || last.hasSuffix("-get") || last.hasSuffix("_get") { return true }
        return readingVerbs.contains { last.hasPrefix($0) && end.dropFirst($0.count).first?.isUppercase == true }
    }

    private static let readingVerbs: Set<String> = ["get", "list", "query", "search", "find", "describe"]

    /// True for `getUpdates`, `get_status` and `get-item`; false for `getaways`.
    private static func beginsWithGet(_ name: Substring) -> Bool {
        guard name.prefix(3).lowercased() == "get", let next = name.dropFirst(3).first else { return false }
        return next.isUppercase || next == "_" || next == "-"
    }

    // MARK: - Parameters

    /// What the parameters of a form or of a query ask; nil for those of an ordinary write.
    /// - Parameter isBody: true for a form; in a URL a `query` may be anything.
    static func asked(by parameters: [FormParameter], isBody: Bool) -> QueueObstacle? {
        var found: QueueObstacle?
        for parameter in parameters {
            let name = parameter.name.lowercased()
            if let obstacle = statement(named: name, parameter.value) {
                if obstacle == .statement { return obstacle }
                found = obstacle
            } else if ["action", "method"].contains(name) && isReading(parameter.value) || isBody && name == "query" && !parameter.isEmpty {
                found = found ?? .question
            }
        }
        return found
    }

    /// What the members of a JSON document ask: the method of a call (`{"method": "session-get"}`), or a statement.
    static func asked(by document: JSONValue) -> QueueObstacle? {
        guard let members = document.object else { return nil }
        var found: QueueObstacle?
        for member in members {
            guard let text = member.value.string else { continue }
            if let obstacle = statement(named: member.name.lowercased(), text) {
                if obstacle == .statement { return obstacle }
                found = obstacle
            } else if member.name == "method", isReading(text) {
                found = found ?? .question
            }
        }
        return found
    }

    private static func statement(named name: String, _ text: @autoclosure () -> String) -> QueueObstacle? {
        guard statementNames.contains(name) else { return nil }
        switch DatabaseStatement(text()) {
        case .changes: return .statement
        case .adds: return .insertion
        case .asks: return .question
        case nil: return nil
        }
    }

    private static let statementNames: Set<String> = ["q", "query", "sql", "ksql", "stmt", "statement", "cmd", "command"]
}

extension Substring {
    /// The segment of a path without the format at its end: `search` of `search.json`; nil if it has none.
    var withoutFormat: Substring? {
        guard let dot = lastIndex(of: "."), dot > startIndex, case let format = self[index(after: dot)...],
            (2...5).contains(format.utf8.count), format.utf8.allSatisfy(FieldByte.isLetter)
        else { return nil }
        return self[..<dot]
    }
}

/// The effect of a text in SQL or one of its dialects, such as InfluxQL. Only its first words are known.
enum DatabaseStatement {
    /// Changes or removes what there is, or who may use it.
    case changes
    /// Adds rows.
    case adds
    case asks

    /// Several statements, separated by semicolons, have the strongest effect among them; nil if none begins with a verb and its object.
    init?(_ text: String) {
        let effects = text.split(separator: ";").compactMap(Self.effect)
        if effects.contains(.changes) {
            self = .changes
        } else if effects.contains(.adds) {
            self = .adds
        } else if effects.contains(.asks) {
            self = .asks
        } else {
            return nil
        }
    }

    private static func effect(of statement: Substring) -> DatabaseStatement? {
        let start = withoutComments(statement).drop { $0.isWhitespace || $0 == "(" || $0 == "\u{FEFF}" }
        let verb = start.prefix(10).prefix { $0.isLetter }.lowercased()
        let rest = start.dropFirst(verb.count)
        guard rest.first?.isWhitespace == true, rest.contains(where: { !$0.isWhitespace }) else { return nil }
        if let objects = changing[verb] {
            let words = rest.prefix(120).split { !$0.isLetter && !$0.isNumber && $0 != "_" }.map { $0.lowercased() }
            // Some take a bare name.
            if words.count == 1, ["drop", "truncate"].contains(verb) { return .changes }
            return words.first.map(objects.first.contains) == true || words.dropFirst().contains(where: objects.later.contains)
                ? .changes : nil
        }
        if ["insert", "upsert", "replace"].contains(verb) { return .adds }
        guard isReading(verb, rest) else { return nil }
        // `SELECT … INTO` writes what it has read.
        return verb == "select" && String(start).contains(anyCase: " into ") ? .changes : .asks
    }

    /// The most characters of a statement whose words are looked at.
    private static let characterCount = 4096

    /// True for a verb that reads, followed by what can follow it: "Show boats" and "Select a colour" are sentences.
    private static func isReading(_ verb: String, _ rest: Substring) -> Bool {
        let words = rest.prefix(characterCount).split { !$0.isLetter && $0 != "_" }.map { $0.lowercased() }
        switch verb {
        case "select":
            let start = rest.first { !$0.isWhitespace }
            return words.contains("from") || start.map { !$0.isLetter } ?? false || rest.contains("(")
        case "with": return words.contains("select") && rest.contains("(")
        case "show": return words.first.map { shown.contains($0) || $0.hasSuffix("s") && objects.contains(String($0.dropLast())) } ?? false
        case "describe": return words.count <= 2
        case "explain": return words.first.map { ["analyze", "query", "select", "with", "verbose", "extended"].contains($0) } ?? false
        default: return false
        }
    }

    /// What `SHOW` shows besides `objects` and their plurals.
    private static let shown: Set<String> = objects.union([
        "binary", "character", "charset", "collation", "columns", "create", "databases", "diagnostics", "engine", "engines", "errors",
        "events", "extended", "field", "fields", "full", "global", "grants", "indexes", "keys", "master", "partitions", "plugins",
        "privileges", "processlist", "profile", "properties", "queries", "replica", "schemas", "search_path", "series", "server_version",
        "session", "slave", "stats", "status", "storage", "table", "tag", "timezone", "transaction", "variables", "warnings",
    ])

    /// The verbs of statements that change or remove, each with the words that may follow it at once, and those that follow later. A
    /// sentence such as "delete the old tide table" has neither.
    private static let changing: [String: (first: Set<String>, later: Set<String>)] = [
        "alter": (objects, []), "create": (objects, []), "drop": (objects, []), "truncate": (objects, []), "rename": (objects, []),
        "delete": (["from", "where"], []), "update": ([], ["set"]), "merge": (["into"], []), "kill": (["query", "connection"], []),
        "grant": (objects.union(["all", "select", "insert", "read", "write"]), ["to"]),
        "revoke": (objects.union(["all", "select", "insert", "read", "write"]), ["from"]),
    ]

    private static let objects: Set<String> = [
        "bucket", "column", "connector", "continuous", "database", "function", "index", "keyspace", "materialized", "measurement", "or",
        "procedure", "retention", "role", "schema", "sequence", "series", "shard", "stream", "subscription", "table", "tablespace", "temp",
        "temporary", "topic", "trigger", "type", "unique", "user", "view",
    ]

    private static func withoutComments(_ statement: Substring) -> Substring {
        var rest = statement.drop { $0.isWhitespace }
        while true {
            if rest.hasPrefix("--") {
                rest = rest.drop { !$0.isNewline }
            } else if rest.hasPrefix("/*"), let end = rest.firstRange(of: "*/")?.upperBound {
                rest = rest[end...]
            } else {
                return rest
            }
            rest = rest.drop { $0.isWhitespace }
        }
    }
}

/// A name of a form or of a query, with its value.
struct FormParameter {
    /// Bytes of a value that are decoded; a statement is shorter.
    private static let valueLimit = Int.kib(4)

    let name: String
    private let raw: ArraySlice<UInt8>
    private let isEncoded: Bool

    var isEmpty: Bool { raw.isEmpty }
    /// The beginning of the value.
    var value: String {
        let start = raw.prefix(Self.valueLimit)
        return isEncoded ? FormEncoding.text(of: start) : String(decoding: start, as: UTF8.self)
    }

    /// The parameters of a request's URL.
    static func all(ofTarget request: RequestHead) -> [FormParameter] {
        let query = request.target.utf8.drop { $0 != UInt8(ascii: "?") }.dropFirst()
        return query.isEmpty ? [] : all(ofForm: Array(query))
    }

    /// The parameters of `application/x-www-form-urlencoded`.
    static func all(ofForm body: [UInt8]) -> [FormParameter] {
        body.split(separator: UInt8(ascii: "&")).map { pair in
            let name = pair.prefix { $0 != FieldByte.equals }
            return FormParameter(name: FormEncoding.text(of: name), raw: pair.dropFirst(name.count + 1), isEncoded: true)
        }
    }

    /// The parts of `multipart/form-data`, each with the first line of its content (RFC 7578 §4.2).
    static func all(ofMultipart body: [UInt8]) -> [FormParameter] {
        let (mark, end) = (Array("name=\"".utf8), Array("\r\n\r\n".utf8))
        var (found, rest) = ([FormParameter](), body[...])
        while let start = rest.firstRange(of: mark)?.upperBound {
            let name = rest[start...].prefix { $0 != FieldByte.quote }
            rest = rest[name.endIndex...]
            let content = (rest.firstRange(of: end).map { rest[$0.upperBound...] } ?? rest.suffix(0)).prefix { $0 != UInt8(ascii: "\r") }
            found.append(FormParameter(name: String(decoding: name, as: UTF8.self), raw: content, isEncoded: false))
        }
        return found
    }
}
