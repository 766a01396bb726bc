// What clients of git and Git LFS get while their server is away: a pack made of those that were fetched, or the reason in their own form
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

    /// The longest answer about large files that is changed.
    private static let batchLimit = Int.mib(4)

    func complete(_ reply: inout Reply, to context: inout RequestContext) async {
        let asked = GitExchange(context.request)
        if asked == .largeFiles, context.trace.verdict == .stale { return await unexpire(&reply) }
        if asked == .fetch, context.trace.verdict == .stale, let references = await wholeReferences(for: context) {
            reply.head.fields[.contentLength] = nil
            reply.body = .bytes(references)
            return
        }
        // A problem of Rockpool itself about an upstream that is away.
        guard context.trace.proxyStatus != nil, reply.head.status == 503 || reply.head.status == 504,
            reply.head.fields[.contentType] == "application/problem+json"
        else { return }
        if asked == .fetch, let pack = await pack(for: context) {
            context.trace.verdict = .stale
            context.trace.cacheStatus = CacheStatus(hit: true, detail: "offline")
            reply.head = ResponseHead(status: 200, fields: Self.fields("application/x-git-upload-pack-result"))
            reply.body = pack
            return
        }
        let words = asked.refusal(host: context.request.origin.hostAndPort)
        var (type, text) = ("text/plain; charset=utf-8", Array((words + "\n").utf8))
        if asked == .fetch, context.gitRequest != nil {
            // git shows an error that its server tells within the protocol.
            reply.head.status = 200
            (type, text) = ("application/x-git-upload-pack-result", GitPacket.line("ERR Rockpool: \(words)"))
        } else if asked == .largeFiles {
            let message: JSONValue = ["message": .string(words)]
            (type, text) = ("application/vnd.git-lfs+json", message.serialized())
        }
        reply.head.fields[.contentType] = type
        reply.head.fields[.contentLength] = nil
        reply.body = .bytes(ByteBuffer(bytes: text))
    }

    private static func fields(_ type: String) -> HTTPFields { [.contentType: type, .cacheControl: "no-store"] }

    // MARK: packs

    /// Returns the answer to a fetch that nobody has made in this form, from the packs of others.
    private func pack(for context: RequestContext) async -> ReplyBody? {
        guard let request = context.gitRequest, request.isComplete else { return nil }
        guard var found = await entries(for: context)?.filter({ $0.response.part == nil && $0.response.pack != nil }) else { return nil }
        while true {
            let stored = found.compactMap(\.response.pack)
            guard let chain = StoredPack.chain(for: request.wants, having: Set(request.haves), among: stored), !chain.packs.isEmpty else {
                return nil
            }
            // What the client has is not agreed on yet, and it may have more to say.
            if !request.isDone, chain.bases.isEmpty { return .bytes(ByteBuffer(bytes: Self.nothingCommon(request))) }
            var parts: [StoredPackReader] = []
            for index in chain.packs {
                guard let body = try? await cache.body(of: found[index]), let part = await StoredPackReader(body, in: cache) else {
                    found.remove(at: index)
                    break
                }
                parts.append(part)
            }
            guard parts.count == chain.packs.count else { continue }
            logger.debug("a pack is made of \(parts.count) that were fetched", metadata: ["url": "\(context.request.url)"])
            return .stream(AssembledPack(parts, behind: Self.introduction(request, bases: chain.bases)), length: nil)
        }
    }

    /// The answers of `git-upload-pack` that the client may be given, the newest first.
    func entries(for context: RequestContext) async -> [CacheEntry]? {
        let partitions = Set(StoragePartition.readable(by: context.identity.partition).map(\.name))
        guard let entries = try? await cache.entries(ofURL: context.request.url) else { return nil }
        return lookup.readable(entries, by: context.identity).filter { entry in
            partitions.contains(entry.key.identity) && entry.response.head.status == 200
        }
    }

    private static func nothingCommon(_ request: GitRequest) -> [UInt8] {
        guard request.isVersion2 else { return GitPacket.line("NAK") }
        return GitPacket.line("acknowledgments") + GitPacket.line("NAK") + GitPacket.flushBytes
    }

    /// What precedes the pack.
    private static func introduction(_ request: GitRequest, bases: [String]) -> [UInt8] {
        guard request.isVersion2 else { return GitPacket.line(bases.last.map { "ACK " + $0 } ?? "NAK") }
        guard !request.isDone else { return GitPacket.line("packfile") }
        return GitPacket.line("acknowledgments") + bases.flatMap { GitPacket.line("ACK " + $0) } + GitPacket.line("ready")
            + GitPacket.delimiterBytes + GitPacket.line("packfile")
    }

    // MARK: large files

    /// Removes the times at which the addresses of large files end: the files are stored under them.
    private func unexpire(_ reply: inout Reply) async {
        guard let bytes = await reply.body.collect(upTo: Self.batchLimit, from: cache),
            let answer = try? JSONValue.parse(Array(bytes.readableBytesView))
        else { return }
        let lasting = Self.lasting(answer)
        guard lasting != answer else { return }
        for name in [HTTPField.Name.contentLength, .eTag] + HTTPField.Name.digests { reply.head.fields[name] = nil }
        reply.body = .bytes(ByteBuffer(bytes: lasting.serialized()))
    }

    private static func lasting(_ value: JSONValue) -> JSONValue {
        if let items = value.array { return .array(items.map(lasting)) }
        guard let members = value.object else { return value }
        return .object(
            JSONObject(members.filter { $0.name != "expires_at" && $0.name != "expires_in" }.map { ($0.name, lasting($0.value)) }))
    }
}
