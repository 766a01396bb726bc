// The references that are shown while the server is away: the newest whose objects somebody has fetched. A client that has pushed, or only
// lists, sees newer ones, with which a clone would ask for objects that nobody has fetched.
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

extension GitReplies {
    /// The longest list of references that is kept twice.
    private static let limit = Int.mib(4)

    /// Keeps a copy of the stored references if their objects are stored, because the answer to this request takes their place.
    func keepReferences(for context: RequestContext) async {
        guard context.isReachable, let stored = await stored(for: context), let entry = stored.newest,
            stored.whole.map({ $0.1 }) != entry.1,
            entry.1.isSubset(of: stored.objects), let body = try? await cache.body(of: entry.0),
            let bytes = try? await cache.read(0..<entry.0.response.bodyLength, of: body)
        else { return }
        let (old, key) = (entry.0, Self.key(of: entry.0, context))
        guard let category = active.category(named: old.response.category),
            let writer = await cache.beginWrite(expectedLength: old.response.bodyLength, category: category, for: key)
        else { return }
        do {
            guard try await writer.append(bytes) else { return }
            _ = try await cache.commit(writer, key: key, response: old.response, mayLinger: true)
        } catch {
            logger.failed("references of git are not kept", error: error)
        }
    }

    /// The references to show in place of the newest, if the objects of the newest are not stored; nil otherwise.
    func wholeReferences(for context: RequestContext) async -> ByteBuffer? {
        guard let stored = await stored(for: context), let newest = stored.newest, !newest.1.isSubset(of: stored.objects),
            let whole = stored.whole, whole.1.isSubset(of: stored.objects), let body = try? await cache.body(of: whole.0)
        else { return nil }
        return try? await cache.read(0..<whole.0.response.bodyLength, of: body)
    }

    /// What is stored of a repository, for the client of a request.
    private struct Stored {
        var newest: (CacheEntry, Set<String>)?
        /// The copy.
        var whole: (CacheEntry, Set<String>)?
        /// The objects that were fetched.
        var objects: Set<String>
    }

    private func stored(for context: RequestContext) async -> Stored? {
        guard context.gitRequest?.kind == .references, let entries = await entries(for: context) else { return nil }
        var stored = Stored(objects: Set(entries.compactMap(\.response.pack).flatMap(\.wants)))
        for entry in entries where entry.response.pack == nil && entry.response.bodyLength <= Int64(Self.limit) {
            if stored.newest == nil, entry.key == context.key(in: entry.key.partition) {
                stored.newest = await listed(entry)
            } else if stored.whole == nil, entry.key == Self.key(of: entry, context) {
                stored.whole = await listed(entry)
            }
        }
        return stored
    }

    /// An entry with the objects that its references name.
    private func listed(_ entry: CacheEntry) async -> (CacheEntry, Set<String>)? {
        guard let body = try? await cache.body(of: entry), let bytes = try? await cache.read(0..<entry.response.bodyLength, of: body) else {
            return nil
        }
        return GitRequest.objects(listedIn: Array(bytes.readableBytesView)).map { (entry, $0) }
    }

    /// The key of the copy.
    private static func key(of entry: CacheEntry, _ context: RequestContext) -> CacheKey {
        CacheKey(
            method: "POST", origin: context.request.origin, target: context.request.target, identity: entry.key.identity,
            body: CacheStore.digest(of: (context.gitRequest?.key ?? []) + Array("\nwhole".utf8)))
    }
}
