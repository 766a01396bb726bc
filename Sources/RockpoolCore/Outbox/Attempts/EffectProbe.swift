// What a write of unknown effect has done: a probe of the upstream, and the place to which an answer redirects (docs/outbox.md#uncertain,
// docs/outbox.md#redirects).
import HTTPTypes

/// Probes for the effect of one operation with one safe request.
///
/// A single probe cannot prove that an effect is *not* there: the sent request may still be applied. Therefore `absent` is returned only
/// where a condition guards the resend.
package struct EffectProbe: Sendable {
    private let operation: RequestHead
    private let body: JSONValue?
    private let resource: Resource
    private let templates: ResourceTemplates
    private let isCreate: Bool
    /// The probe request, without a key.
    package let question: RequestHead

    /// Nil for writes without a distinguishable effect: actions, and bodies that are not JSON.
    /// - Parameter operation: the request as it was sent.
    package init?(_ operation: RequestHead, body: [UInt8], resource: Resource) {
        self.operation = operation
        self.resource = resource
        self.body = try? JSONValue.parse(body)
        templates = ResourceTemplates(resource)
        guard let match = templates.match(target: operation.target) else { return nil }
        isCreate = !match.isItem
        guard isCreate ? operation.method == .post && self.body?.object != nil : operation.method != .post else { return nil }
        var look = operation.look
        if templates.isOfRows, match.isItem { look.target = match.path }
        question = look
    }

    /// - Parameter isKnown: true for an item that was in the collection before, or was created by another operation.
    package func judge(_ head: ResponseHead, body: [UInt8], isKnown: (String) -> Bool) -> ObservedEffect {
        let answer = try? JSONValue.parse(body)
        if isCreate { return head.status == 200 ? answer.map { created(in: $0, isKnown) } ?? .unknown : .unknown }
        switch (operation.method, head.status) {
        case (.delete, 404), (.delete, 410): return .present(nil)
        case (.put, 200), (.patch, 200):
            if let theirs = answer.flatMap(item), shows(theirs) { return .present(nil) }
        default: break
        }
        return isStillGuarded(head) ? .absent : .unknown
    }

    /// True if the state that the write's condition names is still current: a resend of the same request can then succeed once at most.
    private func isStillGuarded(_ head: ResponseHead) -> Bool {
        guard let condition = operation.fields[.ifMatch].flatMap({ EntityTag($0) }),
            let current = head.fields[.eTag].flatMap({ EntityTag($0) })
        else { return false }
        return head.status == 200 && !condition.isWeak && !current.isWeak && condition.names(current)
    }

    /// True if an item matches the write's result: it has every member that the write sets.
    private func shows(_ theirs: JSONValue) -> Bool {
        guard let mine = body.flatMap(item) else { return false }
        if operation.method == .put { return Self.contains(theirs, mine: mine, except: managed) }
        let type = operation.fields[.contentType]?.lowercased() ?? ""
        guard !type.contains("json-patch"), mine.object != nil else { return false }
        return RepresentationShape(resource).merged(theirs, with: mine) == theirs
    }

    private func created(in list: JSONValue, _ isKnown: (String) -> Bool) -> ObservedEffect {
        guard let items = JSONPointer(resource.items)?.get(in: list)?.array, let mine = body.flatMap(item) else { return .unknown }
        let shape = RepresentationShape(resource)
        let candidates = items.map(shape.listed).compactMap { item -> ServerID? in
            guard let id = shape.serverID(of: item), !isKnown(id.text), Self.contains(item, mine: mine, except: managed) else {
                return nil
            }
            return id
        }
        guard candidates.count == 1, let id = candidates.first else { return .unknown }
        return .present(ServerMapping(id: id, url: operation.origin.url + id.itemTarget(below: operation, templates: templates)))
    }

    /// Returns the object within its envelope.
    private func item(in value: JSONValue) -> JSONValue? { RepresentationShape(resource).opened(value) ?? value }

    /// Members that the server assigns: a client's values for them prove nothing.
    private var managed: Set<String> {
        let pointers = [resource.id, resource.version == "etag" ? nil : resource.version, resource.updatedAt].compactMap { $0 }
        return Set(pointers.compactMap { JSONPointer($0)?.tokens }.filter { $0.count == 1 }.compactMap(\.first))
    }

    private static func contains(_ theirs: JSONValue, mine: JSONValue, except managed: Set<String>) -> Bool {
        guard let mine = mine.object, let theirs = theirs.object else { return theirs == mine }
        return mine.allSatisfy { managed.contains($0.0) || theirs[$0.0] == $0.1 }
    }

    /// Returns the ids of a collection's items; nil when the body is not a collection.
    package static func ids(in body: [UInt8], resource: Resource) -> Set<String>? {
        guard let list = try? JSONValue.parse(body), let items = JSONPointer(resource.items)?.get(in: list)?.array else { return nil }
        let shape = RepresentationShape(resource)
        return Set(items.compactMap { shape.idText(in: shape.listed($0)) })
    }
}

extension RequestHead {
    /// A GET of the write's target, without its conditions and its body, and in the identity coding, which leaves ETags strong
    /// (docs/outbox.md#detection).
    package var look: RequestHead {
        var question = self
        question.method = .get
        question.target = path
        for name in [HTTPField.Name.ifMatch, .ifNoneMatch, .ifUnmodifiedSince, .contentType, .contentEncoding, .contentLength, .expect] {
            question.fields[name] = nil
        }
        question.fields[.accept] = "application/json, */*;q=0.1"
        question.fields[.acceptEncoding] = "identity"
        return question
    }
}

/// The presence of an operation's effect at the upstream.
package enum ObservedEffect: Hashable, Sendable {
    /// The effect is present; for a create, with the created entity's mapping.
    case present(ServerMapping?)
    /// The effect is absent and can no longer occur: the sent request had a condition that no longer holds.
    case absent
    /// The effect cannot be determined, or not yet.
    case unknown
}

// MARK: - Redirects

/// A redirect with another method, in relation to the write that it answers.
struct WriteRedirect {
    /// The place that a redirect names.
    enum Place: Hashable {
        /// The entity of the write, its collection, or something below them.
        case own
        /// A page on which somebody is to sign in.
        case login
        case elsewhere
    }

    private let request: RequestHead
    /// Path and query at the write's host; nil at another host or scheme.
    private let target: String?
    /// The decoded segments of both paths.
    private let asked, shown: [String]

    init(_ location: String, from request: RequestHead) {
        self.request = request
        target = Self.target(of: location, from: request)
        let asked = Self.segments(of: request.target)
        var shown = target.map(Self.segments) ?? []
        // `/notes/index.php` stands for `/notes/`.
        if let last = shown.last, last.hasPrefix("index."), last != asked.last { shown.removeLast() }
        (self.asked, self.shown) = (asked, shown)
    }

    /// No list of words decides alone: a redirect that leads to none of the write's own places is never `own`.
    var place: Place {
        guard target != nil else { return .elsewhere }
        if namesLogin || shown != asked && carriesPath { return .login }
        return isOwn ? .own : .elsewhere
    }

    /// The path without a query; nil for the root, which is the home of anything.
    var path: String? { shown.isEmpty ? nil : "/" + shown.joined(separator: "/") }

    /// The write's path without its ids: writes of one form have one shape.
    var shape: String { asked.filter { !Self.isID($0) }.joined(separator: "/") }

    // MARK: - The write's own places

    private var isOwn: Bool {
        if asked.isEmpty { return shown.isEmpty || shown.last.map(Self.isID) == true }
        if shown.starts(with: asked) || isAbove || isBeside { return true }
        guard let last = shown.last else { return false }
        // `/comment/reply/12` → `/node/12`, `/index.php?title=Pool&action=submit` → `/wiki/Pool`
        if asked.contains(last), Self.isID(last) || shown.count > 1 && asked.last == last { return true }
        if shown.count > 1, Self.parameters(of: request.target).contains(where: { $0.value == last && $0.value.count > 1 }) { return true }
        // `/projects/pool/issues` → `/issues/12`
        return zip(shown, shown.dropFirst()).contains { $0 == asked.last && Self.isID($1) }
    }

    /// `/notes/7/edit` → `/notes/7` or `/notes`, `/owners/11/pets/2/visits` → `/owners/11`. The root is above everything, so only an id that
    /// lies in it makes it a collection.
    private var isAbove: Bool {
        guard shown.count < asked.count, asked.starts(with: shown) else { return false }
        if asked.count - shown.count == 2, Self.isID(asked[asked.count - 2]) { return true }
        return !shown.isEmpty && (asked.count - shown.count == 1 || Self.isID(asked[shown.count - 1]))
    }

    /// Another member of the collection: `/notes/7` → `/notes/8`, `/notes/add` → `/notes/8`.
    private var isBeside: Bool {
        let collection = asked.dropLast()
        guard !collection.isEmpty, shown.count > collection.count, shown.starts(with: collection) else { return false }
        return request.method != .post || asked.last.map(Self.isID) == true || Self.isID(shown[collection.count])
    }

    /// True for a segment with a digit that is no version: 17, 2024-05-01-pool, a UUID; not v2.
    private static func isID(_ segment: String) -> Bool {
        guard segment.utf8.contains(where: \.isDigit) else { return false }
        let isVersion = segment.first.map { $0 == "v" || $0 == "V" } == true && segment.dropFirst().allSatisfy { $0.isNumber || $0 == "." }
        return !isVersion
    }

    // MARK: - Logins

    /// True if a parameter of the place carries the write's path, to return there: `?next=/notes`, `?zurueck=https%3A%2F%2Fhost%2Fnotes`.
    private var carriesPath: Bool {
        guard let target, !asked.isEmpty else { return false }
        return Self.parameters(of: target).contains { parameter in
            [parameter.value, FormEncoding.text(of: parameter.value.utf8)].contains { value in
                guard value.contains("/"), let place = Self.target(of: value, from: request) else { return false }
                return Self.segments(of: place) == asked
            }
        }
    }

    /// True for a path with a segment that names a login: the last one, or one that the write's own path lacks. Sites use these words for
    /// other pages too, as Django's admin in `/admin/auth/group/`.
    private var namesLogin: Bool {
        let (shown, own) = (shown.map(Self.word), asked.map(Self.word))
        return shown.indices.contains { index in
            Self.loginWords.contains(shown[index]) && (index == shown.count - 1 || !own.contains(shown[index]))
        }
    }

    private static let loginWords: Set<String> = ["login", "log-in", "log_in", "signin", "sign-in", "sign_in", "auth"]

    /// A segment in lower case, without the extension of a file.
    private static func word(_ segment: String) -> String { String(segment.lowercased().prefix { $0 != "." }) }

    // MARK: - Targets

    /// Returns the path and query that a location names at the write's host. An upgrade of the same path to HTTPS names none: nothing was
    /// done yet.
    private static func target(of location: String, from request: RequestHead) -> String? {
        switch RedirectTarget(location, from: request) {
        case .sameOrigin(let target): return target
        case .sameHost:
            guard let start = location.firstRange(of: "//") else { return nil }
            let path = String(location[start.upperBound...].drop { $0 != "/" && $0 != "?" && $0 != "#" }.prefix { $0 != "#" })
            let isUpgrade = request.origin.scheme == .http && segments(of: path) == segments(of: request.target)
            return isUpgrade ? nil : path
        case .otherHost, .otherScheme: return nil
        }
    }

    private static func segments(of target: String) -> [String] {
        target.prefix { $0 != "?" && $0 != "#" }.split(separator: "/").map { $0.percentDecoded ?? String($0) }
    }

    private static func parameters(of target: String) -> [(name: String, value: String)] {
        guard let mark = target.firstIndex(of: "?") else { return [] }
        return target[target.index(after: mark)...].prefix { $0 != "#" }.split(separator: "&").map { pair in
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map { FormEncoding.text(of: $0.utf8) }
            return (parts.first ?? "", parts.count > 1 ? parts[1] : "")
        }
    }
}

/// The places to which an upstream has redirected writes, as long as they were none of the writes' own.
struct CommonPlaces: Sendable {
    private static let capacity = 64

    private var shapes: [String: Set<String>] = [:]

    /// Notes a place, and returns true if writes of another form were led there too: then it is the upstream's login.
    mutating func note(_ redirect: WriteRedirect) -> Bool {
        guard let path = redirect.path else { return false }
        if shapes.count >= Self.capacity, shapes[path] == nil { shapes = [:] }
        var known = shapes[path, default: []]
        if known.count < Self.capacity { known.insert(redirect.shape) }
        shapes[path] = known
        return known.count > 1
    }
}
