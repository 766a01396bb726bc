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

    /// Keeps the stored references as they can be followed, because the answer to this request takes the place of the stored ones.
    func keepReferences(for context: RequestContext) async {
        guard context.isReachable, let stored = await stored(for: context), let (entry, newest) = stored.newest, !stored.fetched.isEmpty
        else { return }
        let list = newest.followable(stored.fetched, before: stored.followed)
        guard list != stored.followed, list != newest || newest.objects.isSubset(of: stored.fetched) else { return }
        let (bytes, key) = (ByteBuffer(bytes: list.bytes), Self.key(in: entry.key.identity, for: context))
        var response = entry.response
        response.head = response.head.uncoded
        guard let category = active.category(named: response.category),
            let writer = await cache.beginWrite(expectedLength: Int64(bytes.readableBytes), category: category, for: key)
        else { return }
        do {
            guard try await writer.append(bytes) else { return }
            _ = try await cache.commit(writer, key: key, response: response, mayLinger: true)
        } catch {
            logger.failed("references of git are not kept", error: error)
        }
    }

    /// The references to show in place of the newest, if the objects of the newest are not all stored; nil otherwise.
    func followableReferences(for context: RequestContext) async -> ByteBuffer? {
        guard let stored = await stored(for: context), let (_, newest) = stored.newest else { return nil }
        let list = newest.followable(stored.fetched, before: stored.followed)
        return list == newest ? nil : ByteBuffer(bytes: list.bytes)
    }

    /// What is stored of a repository, for the client of a request.
    private struct Stored {
        var newest: (CacheEntry, GitReferences)?
        /// The copy.
        var followed: GitReferences?
        /// The objects that were fetched.
        var fetched: Set<String>
    }

    private func stored(for context: RequestContext) async -> Stored? {
        guard let packs = context.urlOfPacks, let lists = await entries(ofURL: context.request.url, for: context),
            let answers = packs == context.request.url ? lists : await entries(ofURL: packs, for: context)
        else { return nil }
        var stored = Stored(fetched: Set(answers.compactMap(\.response.pack).flatMap(\.wants)))
        let version = context.request.fields[.gitProtocol]
        for entry in lists where entry.response.pack == nil && entry.response.requestFields[.gitProtocol] == version {
            if stored.newest == nil, entry.key == context.key(in: entry.key.partition) {
                stored.newest = await references(in: entry).map { (entry, $0) }
            } else if stored.followed == nil, entry.key == Self.key(in: entry.key.identity, for: context) {
                stored.followed = await references(in: entry)
            }
        }
        return stored
    }

    private func references(in entry: CacheEntry) async -> GitReferences? {
        (try? await lookup.content(of: entry, limit: Self.limit)).flatMap { GitReferences($0) }
    }

    /// The key of the copy, in a partition.
    private static func key(in partition: String, for context: RequestContext) -> CacheKey {
        let question = (context.gitRequest?.key ?? []) + Array("\nfollowed\n\(context.request.fields[.gitProtocol] ?? "")".utf8)
        return CacheKey(
            method: context.request.method.rawValue, origin: context.request.origin, target: context.request.target, identity: partition,
            body: CacheStore.digest(of: question))
    }
}

extension RequestContext {
    /// For a request that lists references, the URL at which packs are asked for; nil for any other request.
    fileprivate var urlOfPacks: String? {
        if let gitRequest { return gitRequest.kind == .references ? request.url : nil }
        let (list, packs) = ("/info/refs", "/git-upload-pack")
        guard GitExchange(request) == .references, request.method == .get else { return nil }
        return String(request.urlWithoutQuery.dropLast(list.count)) + packs
    }
}
