// Helpers of the store's tests: temporary directories, a manual clock, short constructors.
import Foundation
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// A temporary directory, removed after the test.
final class Scratch: Sendable {
    let path: String

    init() throws {
        path = "\(FileManager.default.temporaryDirectory.path)/rockpool-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    var cache: String { "\(path)/cache" }
    var state: String { "\(path)/state" }

    /// Copies a directory in its state after a crash: the files of this moment, without a clean shutdown.
    func copy(_ directory: String, to name: String) throws -> String {
        let target = "\(path)/\(name)"
        try FileManager.default.copyItem(atPath: directory, toPath: target)
        return target
    }

    /// Returns the allocated bytes of everything in a directory, as `du` counts.
    static func allocated(_ path: String) -> Int64 {
        var status = stat()
        guard lstat(path, &status) == 0 else { return 0 }
        let names = (status.st_mode & S_IFMT) == S_IFDIR ? (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] : []
        return names.reduce(Int64(status.st_blocks) * 512) { $0 + allocated("\(path)/\($1)") }
    }

    /// Returns the paths of the files below a directory; what disappears meanwhile is left out.
    static func files(under path: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).flatMap { name in
            var isDirectory: ObjCBool = false
            guard FileManager.default.fileExists(atPath: "\(path)/\(name)", isDirectory: &isDirectory) else { return [String]() }
            return isDirectory.boolValue ? files(under: "\(path)/\(name)") : ["\(path)/\(name)"]
        }
    }
}

/// A clock that moves only when the test advances it.
final class ManualTime: Sendable {
    private let state = Mutex(Timestamp(seconds: 1_800_000_000))

    var now: Timestamp { state.withLock { $0 } }
    func advance(_ span: TimeSpan) { state.withLock { $0 = $0 + span } }
}

let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
let origin = OriginAddress(scheme: .https, host: "api.example.com")

func key(_ target: String, identity: String = "") -> CacheKey {
    CacheKey(method: "GET", origin: origin, target: target, identity: identity)
}

func storage(
    cache: ByteCount = .mb(100), data: ByteCount = .mb(100), memory: ByteCount = .mb(8), minFree: ByteCount = .zero
) -> StorageSettings {
    var settings = StorageSettings()
    settings.cacheLimit = cache
    settings.dataLimit = data
    settings.memoryLimit = memory
    settings.minFree = minFree
    return settings
}

/// Returns pseudo-random bytes that depend on the seed and do not repeat early.
func bytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
    return (0..<count).map { _ in
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return UInt8(truncatingIfNeeded: state)
    }
}

extension CacheStore {
    /// Stores one response; returns nil when there was no space.
    /// - Parameter asked: when it was asked for; nil for now.
    @discardableResult
    func put(
        _ target: String, _ body: [UInt8], category: CacheCategory = .assets, at now: Timestamp, fields: HTTPFields = [:],
        vary: HTTPFields = [:], asked: Tick? = nil, ttl: TimeSpan? = .hours(1), announced: Bool = true, identity: String = "",
        groups: [String] = []
    ) async throws -> CacheEntry? {
        guard
            let writer = await beginWrite(
                expectedLength: announced ? Int64(body.count) : nil, category: category, for: key(target, identity: identity)),
            try await writer.append(all: body)
        else { return nil }
        let response = StoredResponse(
            head: ResponseHead(status: 200, fields: fields), requestFields: vary, requestTime: now, asked: asked ?? ticks.next(),
            responseTime: now, bodyLength: 0, category: category.name, assignedTTL: ttl)
        return try await commit(writer, key: key(target, identity: identity), response: response, groups: groups)
    }

    /// Stores the first `body.count` bytes of a body of `total` bytes.
    func putPart(
        _ target: String, _ body: [UInt8], from start: Int = 0, of total: Int, tag: String = "\"1\"", at now: Timestamp
    ) async throws -> CacheEntry? {
        guard let writer = await beginWrite(expectedLength: Int64(total), category: .assets), try await writer.append(all: body) else {
            return nil
        }
        let fields: HTTPFields = [.contentRange: "bytes \(start)-\(start + body.count - 1)/\(total)", .eTag: tag]
        let response = StoredResponse(
            head: ResponseHead(status: 206, fields: fields), requestTime: now, asked: ticks.next(), responseTime: now, category: "assets")
        return try await commitPart(writer, key: key(target)) { _ in response }
    }

    /// Returns the entry of a target when there is exactly one.
    func only(_ target: String) async throws -> CacheEntry? {
        let found = try await lookup(key(target))
        return found.count == 1 ? found[0] : nil
    }

    func bytes(of entry: CacheEntry) async throws -> [UInt8]? {
        switch try await body(of: entry) {
        case nil: nil
        case .bytes(let buffer): Array(buffer.readableBytesView)
        case .file(let path, let offset, let length, _):
            FileManager.default.contents(atPath: path).map { Array($0.dropFirst(Int(offset)).prefix(Int(length))) }
        case .sealed(let file, let range, _): Array(try file.read(range).readableBytesView)
        }
    }
}

extension CacheWriter {
    /// Appends the body in pieces, as a socket delivers them.
    func append(all body: [UInt8]) async throws -> Bool {
        for start in stride(from: 0, to: body.count, by: 65536) {
            guard try await append(ByteBuffer(bytes: body[start..<min(start + 65536, body.count)])) else { return false }
        }
        return true
    }
}

func openCache(_ directory: String, _ time: ManualTime, _ settings: StorageSettings = storage(), seal: BodySeal = .off) throws -> CacheStore
{
    try CacheStore.open(
        directory: directory, settings: settings, categories: CacheCategory.builtIn, seal: seal, clock: { time.now }, logger: quiet)
}

func openData(_ directory: String, _ time: ManualTime, _ settings: StorageSettings = storage()) throws -> DataStore {
    try DataStore.open(directory: directory, settings: settings, clock: { time.now }, logger: quiet)
}

func write(
    _ id: String, body: OperationBody = .inline(Array("{}".utf8)), fields: HTTPFields = [:], lane: String = "notes",
    clientKey: String? = nil, principal: String? = nil
) -> QueuedWriteDraft {
    QueuedWriteDraft(
        id: id, request: RequestHead(method: .post, origin: origin, target: "/v1/notes?a=1", fields: fields), body: body,
        upstream: "notes", entity: "/v1/notes/\(id)", lane: lane, idempotencyKey: clientKey ?? "key-\(id)",
        keyIsClients: clientKey != nil, principal: principal)
}
