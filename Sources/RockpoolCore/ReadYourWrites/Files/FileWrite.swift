// A write that sets, removes or moves files: PUT, DELETE, MKCOL, MOVE, COPY (RFC 9110 §9.3, RFC 4918 §9; docs/outbox.md#files-and-collections),
// and the copies of S3 (`CopyObject`).
import HTTPTypes

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
