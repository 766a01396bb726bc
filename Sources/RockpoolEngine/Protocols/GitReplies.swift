// What clients of git and Git LFS get while their server is away: an answer made of those that were fetched, or the reason in their own form
// (docs/guide/programs.md#git).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

/// Completes the replies to requests of routes with `kind: git`.
struct GitReplies: Sendable {
    let cache: CacheStore
    let lookup: EntryLookup
    /// The configuration in force.
    let active: ActiveConfiguration
    let logger: Logger

    /// The longest answer about large files that is read, and the most that are.
    private static let batchLimit = Int.mib(1)
    private static let batchCount = 200

    func complete(_ reply: inout Reply, to context: inout RequestContext) async {
        let asked = GitExchange(context.request)
        let words = asked.refusal(host: context.request.origin.hostAndPort)
        // A problem of Rockpool itself about an upstream that is away.
        let isRefused =
            context.trace.proxyStatus != nil && (reply.head.status == 503 || reply.head.status == 504)
            && reply.head.fields[.contentType] == "application/problem+json"
        guard isRefused || context.trace.verdict == .stale else { return }
        if let request = context.largeFileRequest, let answer = await files(request, for: context, lack: words) {
            return reply.serve(.bytes(ByteBuffer(bytes: answer.serialized())), of: Self.filesType, for: &context)
        }
        guard isRefused else {
            guard let references = await followableReferences(for: context) else { return }
            reply.head = reply.head.uncoded
            reply.body = .bytes(references)
            return
        }
        if asked == .fetch, let pack = await pack(for: context) { return reply.serve(pack, of: Self.fetchType, for: &context) }
        var (type, text) = ("text/plain; charset=utf-8", Array((words + "\n").utf8))
        if asked == .fetch, context.gitRequest != nil {
            // git shows an error that its server tells within the protocol.
            reply.head.status = 200
            (type, text) = (Self.fetchType, GitPacket.line("ERR Rockpool: \(words)"))
        } else if asked == .largeFiles {
            let message: JSONValue = ["message": .string(words)]
            (type, text) = (Self.filesType, message.serialized())
        }
        reply.head.fields[.contentType] = type
        reply.head.fields[.contentLength] = nil
        reply.body = .bytes(ByteBuffer(bytes: text))
    }

    private static let fetchType = "application/x-git-upload-pack-result"
    private static let filesType = "application/vnd.git-lfs+json"

    // MARK: packs

    /// Returns the answer to a fetch that nobody has made in this form, from the packs of others.
    private func pack(for context: RequestContext) async -> ReplyBody? {
        guard let request = context.gitRequest, request.isComplete else { return nil }
        let stored = await entries(ofURL: context.request.url, for: context)
        guard var found = stored?.filter({ $0.response.part == nil && $0.response.pack != nil }) else { return nil }
        while true {
            let stored = found.compactMap(\.response.pack)
            guard let chain = StoredPack.chain(for: request.wants, having: Set(request.haves), among: stored), !chain.packs.isEmpty else {
                return nil
            }
            let (introduction, hasPack) = request.introduction(bases: chain.bases)
            guard hasPack else { return .bytes(ByteBuffer(bytes: introduction)) }
            var parts: [StoredPackReader] = []
            for index in chain.packs {
                guard let body = try? await cache.body(of: found[index]),
                    let part = await StoredPackReader(body, in: cache, usesSHA256: request.usesSHA256)
                else {
                    found.remove(at: index)
                    break
                }
                parts.append(part)
            }
            guard parts.count == chain.packs.count else { continue }
            logger.debug(
                "a pack is made of \(parts.count) that were fetched",
                metadata: ["url": "\(SecretParameters.redacted(url: context.request.url))"])
            return .stream(AssembledPack(parts, behind: introduction, usesSHA256: request.usesSHA256), length: nil)
        }
    }

    /// The answers at a URL that the client may be given, the newest first.
    func entries(ofURL url: String, for context: RequestContext) async -> [CacheEntry]? {
        let partitions = Set(StoragePartition.readable(by: context.identity.partition).map(\.name))
        guard let entries = try? await cache.entries(ofURL: url) else { return nil }
        return lookup.readable(entries, by: context.identity).filter { entry in
            partitions.contains(entry.key.identity) && entry.response.head.status == 200
        }
    }

    // MARK: large files

    /// Returns where files are, from the answers to this client and others that it may read.
    private func files(_ request: LargeFileRequest, for context: RequestContext, lack: String) async -> JSONValue? {
        var answers: [JSONValue] = []
        for entry in await (entries(ofURL: context.request.url, for: context) ?? []).prefix(Self.batchCount) {
            guard let bytes = try? await lookup.content(of: entry, limit: Self.batchLimit), let answer = try? JSONValue.parse(bytes) else {
                continue
            }
            answers.append(answer)
        }
        return request.answer(from: answers, lack: lack)
    }
}

extension Reply {
    /// Makes it an answer from what is stored.
    fileprivate mutating func serve(_ body: ReplyBody, of type: String, for context: inout RequestContext) {
        context.trace.verdict = .stale
        context.trace.cacheStatus = CacheStatus(hit: true, detail: "offline")
        head = ResponseHead(status: 200, fields: [.contentType: type, .cacheControl: "no-store"])
        self.body = body
        isWithheld = false
    }
}

// MARK: - References

/// The references that are shown while the server is away: the newest whose objects somebody has fetched. A client that has pushed, or only
/// lists, sees newer ones, with which a clone would ask for objects that nobody has fetched.
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

// MARK: - Routing

/// Routes the POSTs of a route with `kind: git`: what asks is a read with a key, anything else a write that never waits
/// (docs/reference/configuration.md#routes).
enum GitRouting {
    /// The longest question that is read; a longer one is passed through.
    private static let limit = Int.mib(1)

    /// Reads the request's body and completes the plan.
    /// - Returns: The body and its key for a question; nil for a write, which `exchange` then carries, and for a question that is too long.
    /// - Throws: The failure that interrupted the body.
    static func route(_ exchange: inout Exchange, plan: inout RoutePlan, routes: RouteTable) async throws(TransferFailure) -> KeyingBody? {
        let asked = GitExchange(exchange.request)
        guard asked.asksByBody, !plan.isWrite, let bytes = try await exchange.collected(upTo: limit) else { return nil }
        let coding = ResponseHead(status: 200, fields: HTTPFields(exchange.request.fields.filter { $0.name == .contentEncoding }))
        let plain = bytes.decoded(of: coding, upTo: 8 * limit).map { Array($0.readableBytesView) }
        if asked == .largeFiles {
            guard let request = plain.flatMap({ LargeFileRequest(body: $0) }) else {
                plan = routes.plan(for: exchange.request, isWrite: true)
                (exchange.body, exchange.bodyLength) = (BodyPipe(whole: bytes), Int64(bytes.readableBytes))
                return nil
            }
            return KeyingBody(bytes, of: request)
        }
        guard let request = plain.flatMap({ GitRequest(body: $0) }) else { return KeyingBody(bytes, for: exchange.request) }
        if let replacement = request.replacement {
            exchange.request.fields[.contentEncoding] = nil
            return KeyingBody(ByteBuffer(bytes: replacement), of: request)
        }
        return KeyingBody(bytes, of: request)
    }
}

extension KeyingBody {
    fileprivate init(_ bytes: ByteBuffer, of request: GitRequest) {
        self.init(bytes: bytes, digest: CacheStore.digest(of: request.key))
        git = request
    }

    fileprivate init(_ bytes: ByteBuffer, of request: LargeFileRequest) {
        self.init(bytes: bytes, digest: CacheStore.digest(of: request.key))
        largeFiles = request
    }
}
