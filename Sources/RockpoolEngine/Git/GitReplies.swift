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
