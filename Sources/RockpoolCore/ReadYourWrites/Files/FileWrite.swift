// A write that sets, removes or moves files: PUT, DELETE, MKCOL, MOVE, COPY (RFC 9110 §9.3, RFC 4918 §9; docs/outbox.md#files-and-collections),
// and the copies of S3 (`CopyObject`).
package import HTTPTypes

/// The effect of one write on the files of its upstream.
package struct FileWrite: Hashable, Sendable {
    package enum Effect: Hashable, Sendable {
        case content
        /// The file, or the collection with everything below it.
        case removal
        case collection
        case move(to: FilePath)
        /// - Parameter isDeep: True if everything below is copied too (`Depth: infinity`, the default).
        case copy(to: FilePath, isDeep: Bool)
        /// Content that the server makes of another file, and that is not known here: a named version of it, or with other metadata.
        case derivation(from: FilePath)
    }

    /// The operation's place in the order of acceptance; 0 for a write that was sent at once.
    package var sequence: Int64 = 0
    /// The operation's public id; empty for a write that was sent at once.
    package var operation = ""
    package var path: FilePath
    package var effect: Effect
    /// The media type and the length of the content that was written.
    package var contentType: String?
    package var length: Int64 = 0
    /// The upstream's tag, once it has answered.
    package var etag: String?
    package var principal: String?
    /// When the write was accepted, or was delivered.
    package var at: Timestamp = .distantPast
    /// Its end; nil while it is open.
    package var ended: Tick?
    package var isDelivered = false

    /// Nil for a request of another method, for a part of a file, and for one with a query, which names something else than a file.
    package init?(_ request: RequestHead) {
        let query = request.target.split(separator: "?", maxSplits: 1).dropFirst().first ?? ""
        // The SDKs of S3 name their operation in a query.
        guard query.isEmpty || query.hasPrefix("x-id=") && !query.contains("&") else { return nil }
        path = FilePath(request.target)
        contentType = request.fields[.contentType]
        if request.method == .put, let source = request.fields.value(of: "x-amz-copy-source") {
            effect = .derivation(from: Self.object(source, at: request.origin))
            noteCopy(of: source, metadata: request.fields.value(of: "x-amz-metadata-directive"))
            return
        }
        let destination = WebDAVEffect.destination(of: request).map { FilePath($0) }
        switch (request.method.rawValue, destination) {
        case ("PUT", _) where !request.fields.contains(.contentRange): effect = .content
        case ("DELETE", _): effect = .removal
        case ("MKCOL", _): effect = .collection
        case ("MOVE", let destination?): effect = .move(to: destination)
        case ("COPY", let destination?): effect = .copy(to: destination, isDeep: request.fields.value(of: "depth") != "0")
        default: return nil
        }
    }

    /// The object that `X-Amz-Copy-Source` names by bucket and key: under both where the path names the bucket, else where the host does.
    private static func object(_ source: String, at origin: OriginAddress) -> FilePath {
        let name = source.drop { $0 == "/" }
        let bucket = name.prefix { $0 != "/" }
        return FilePath("/" + (origin.host.hasPrefix(bucket + ".") ? name.dropFirst(bucket.count + 1) : name))
    }

    /// Makes a copy of the present version, with its metadata, a copy from its source.
    private mutating func noteCopy(of source: String, metadata: String?) {
        guard case .derivation(let object) = effect, !source.contains("?"), metadata?.uppercased() != "REPLACE" else { return }
        effect = .copy(to: path, isDeep: false)
        path = object
    }

    /// The file that the write creates or moves something to; nil for a removal.
    package var created: FilePath? {
        switch effect {
        case .content, .collection, .derivation: path
        case .removal: nil
        case .move(let destination), .copy(let destination, _): destination
        }
    }

    /// True if its content is that of another file.
    package var copies: Bool { if case .copy = effect { true } else { false } }

    /// The files that the write reads or changes, with everything below them.
    private var trees: [FilePath] {
        switch effect {
        case .content, .removal, .collection: [path]
        case .move(let other), .copy(let other, _), .derivation(let other): [path, other]
        }
    }

    /// True for a move or a copy of a tree to its own place or into itself, in any spelling of the paths: it cannot be carried out
    /// (RFC 4918 §9.8.5, §9.9.4). Objects of S3 have names and no trees.
    package static func isIntoItself(_ request: RequestHead) -> Bool {
        let method = request.method.rawValue
        guard method == "COPY" || method == "MOVE", let destination = WebDAVEffect.destination(of: request) else { return false }
        let (source, place) = (FilePath(request.target).resolved, FilePath(destination).resolved)
        return method == "COPY" && request.fields.value(of: "depth") == "0" ? source == place : source.contains(place)
    }

    /// Returns those of the writes that no later one of them has to follow, and some that one has to.
    /// - Parameter writes: in order of acceptance.
    package static func nearest(of writes: [FileWrite]) -> [FileWrite] {
        writes.indices.filter { index in
            !writes[(index + 1)...].prefix(nearestReach).contains { $0.mustFollow(writes[index]) }
        }.map { writes[$0] }
    }

    /// The number of later writes that are compared with each, so that the time is linear.
    private static let nearestReach = 32

    /// True if it makes, moves or copies what other writes need.
    private var changesTree: Bool { if case .content = effect { false } else { effect != .removal } }

    /// True if this write must not be sent before `earlier`: one of them makes, moves, copies or removes what the other one needs.
    /// Writes of content, and removals, to one path are in one lane.
    package func mustFollow(_ earlier: FileWrite) -> Bool {
        guard changesTree || earlier.changesTree else { return removes(earlier.path) || earlier.removes(path) }
        return trees.contains { tree in earlier.trees.contains { $0.contains(tree) || tree.contains($0) } }
    }

    /// True if it removes the collection that a path is below.
    private func removes(_ path: FilePath) -> Bool { effect == .removal && path != self.path && self.path.contains(path) }
}

// MARK: - Paths

/// A path without query, percent-encoding and a slash at its end; empty for the root (RFC 3986 §6.2.2, RFC 4918 §5.2;
/// docs/outbox.md#files-and-collections).
package struct FilePath: Hashable, Sendable {
    package let text: String

    /// - Parameter target: A request's target, or a path, as sent.
    package init(_ target: some StringProtocol) {
        var bytes = FilePath.decoded(target.prefix { $0 != "?" && $0 != "#" }.utf8)
        while bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
        text = String(decoding: bytes, as: UTF8.self)
    }

    /// - Parameter href: A path or an absolute URL, as a multistatus names a resource (RFC 4918 §8.3).
    package init(href: String) {
        let authority = href.hasPrefix("/") ? nil : href.firstRange(of: "://")?.upperBound
        self.init(authority.map { href[$0...].drop { $0 != "/" } } ?? href[...])
    }

    /// A path that is not percent-encoded.
    init(escaping text: String) { self.text = String(Substring(text).trimmingSlashes) }

    /// The path without dot segments and empty ones, as most servers read it (RFC 3986 §5.2.4).
    var resolved: FilePath {
        let segments = text.split(separator: "/").reduce(into: [Substring]()) { kept, segment in
            if segment == ".." { _ = kept.popLast() } else if segment != "." { kept.append(segment) }
        }
        return FilePath(text: segments.reduce(into: "") { $0 += "/" + $1 })
    }

    /// The path of what is named so within this collection.
    func appending(_ name: String) -> FilePath { FilePath(escaping: text + "/" + name) }

    private init(text: String) { self.text = text }

    /// The collection that lists it; nil for the root.
    package var parent: FilePath? { text.lastIndex(of: "/").map { FilePath(text: String(text[..<$0])) } }

    /// The collections above it, the nearest first: at most 64.
    package var ancestors: [FilePath] { Array(sequence(first: self, next: \.parent).dropFirst().prefix(64)) }

    /// The last segment.
    package var name: String { text.lastIndex(of: "/").map { String(text[text.index(after: $0)...]) } ?? text }

    /// The targets that may name it: as a file, and as a collection.
    package var targets: [String] {
        let target = target
        return target.hasSuffix("/") ? [target] : [target, target + "/"]
    }

    private static let plain = Set("/:@=,;()$".utf8)

    /// The path in the form of a request's target.
    package var target: String {
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            let isPlain = FieldByte.isTokenByte(byte) && byte != UInt8(ascii: "%") || Self.plain.contains(byte)
            if isPlain { bytes.append(byte) } else { FormEncoding.percentEncode(byte, into: &bytes) }
        }
        return bytes.isEmpty ? "/" : String(decoding: bytes, as: UTF8.self)
    }

    /// True for the path itself and every path below it.
    package func contains(_ other: FilePath) -> Bool {
        other.text.utf8.starts(with: text.utf8)
            && (other.text.utf8.count == text.utf8.count || other.text.utf8.dropFirst(text.utf8.count).first == UInt8(ascii: "/"))
    }

    /// The path below `destination` that corresponds to this one below `source`; nil if it is not there.
    package func moved(from source: FilePath, to destination: FilePath) -> FilePath? {
        guard source.contains(self) else { return nil }
        return FilePath(text: destination.text + Substring(text.utf8.dropFirst(source.text.utf8.count)))
    }

    private static func decoded(_ text: some Collection<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = Array(text)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), rest.count >= 2, let high = FormEncoding.digit(rest[rest.startIndex]),
                let low = FormEncoding.digit(rest[rest.startIndex + 1])
            {
                bytes.append(high << 4 | low)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return bytes
    }
}

extension Substring {
    /// The text without slashes at its end.
    fileprivate var trimmingSlashes: Substring {
        var text = self
        while text.utf8.last == UInt8(ascii: "/") { text.unicodeScalars.removeLast() }
        return text
    }
}

// MARK: - Content

/// The body of a PUT to a path without a declared resource (RFC 9110 §9.3.4; docs/outbox.md#files-and-collections).
package struct WrittenContent: Sendable {
    private let type: String?
    private let body: [UInt8]

    /// - Parameters:
    ///   - fields: those of the request.
    ///   - body: without a transfer's own coding.
    package init(_ fields: HTTPFields, body: [UInt8]) {
        type = MediaType.essence(of: fields)
        self.body = body
    }

    /// Types that say nothing about content.
    private static let generic: Set<String> = ["application/octet-stream", "binary/octet-stream", "application/x-binary"]

    /// True for a form: an instruction to the server, never a representation.
    private var isForm: Bool { type == "application/x-www-form-urlencoded" || type == "multipart/form-data" }

    /// True if the content can be the representation of its target: no form, and, where a representation is known, of the same type and, in
    /// JSON, with all its members.
    /// - Parameters:
    ///   - known: the head of the last representation; nil if none is known.
    ///   - content: its body, decoded; used for JSON only. Nil if it is not at hand.
    package func mayRepresent(_ known: ResponseHead?, content: [UInt8]?) -> Bool {
        guard !isForm else { return false }
        guard let known, let knownType = MediaType.essence(of: known.fields) else { return true }
        let isUntyped = type.map(Self.generic.contains) ?? true
        guard MediaType.isJSON(known.fields) else { return isUntyped || Self.generic.contains(knownType) || type == knownType }
        guard isUntyped || type == knownType || type.map({ MediaType.isJSON([.contentType: $0]) }) == true else { return false }
        guard let value = try? JSONValue.parse(body) else { return false }
        guard let shown = content.flatMap({ try? JSONValue.parse($0) }) else { return true }
        switch (shown, value) {
        case (.object(let shown), .object(let value)): return shown.names.allSatisfy { value[$0] != nil }
        case (.array, .array): return true
        default: return shown.object == nil && shown.array == nil && value.object == nil && value.array == nil
        }
    }
}
