// Completes a stored beginning with the fetched rest, and joins stored parts (RFC 9111 §3.4).
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

extension ResponseStore {
    /// Combines the stored beginning and a 206 with the rest into the whole, and starts to store it; nil if they do not fit together or the
    /// store has no space. The rest begins with the last stored byte, which must be the same (`PartialResponse.completion`).
    func completed(
        _ entry: CacheEntry?, by received: OriginReply, sentAt: Moment, for context: RequestContext,
        onEnd end: @escaping @Sendable () -> Void
    ) async -> FetchedResponse? {
        guard received.head.status == 206, let entry, let category = active.category(named: entry.response.category),
            let (response, held) = whole(entry.response, with: received.head, sentAt: sentAt),
            Revalidation.mayStay(response, in: entry.key.partition, rule: context.plan.store),
            let writer = await cache.beginWrite(
                joining: [(entry, 0..<held)], expectedLength: response.bodyLength, category: category),
            await continues(received.body, from: writer, at: held)
        else { return nil }
        let body = SharedBody(
            received.body, length: response.bodyLength, prefix: held, writer: writer,
            storing: storing(response, length: response.bodyLength, for: context, under: entry.key, onEnd: end), logger: logger)
        return FetchedResponse(
            head: response.head, length: response.bodyLength, body: .shared(body), claim: body.reader().map { LeaderBody($0) },
            copy: (response, entry.key))
    }

    /// Returns the combined response and the length of the stored beginning; nil if the two belong to different representations, or if the
    /// rest does not range from the last stored byte to the end.
    private func whole(_ stored: StoredResponse, with head: ResponseHead, sentAt: Moment) -> (StoredResponse, Int64)? {
        guard let combined = PartialResponse.combined(stored, with: head, sent: sentAt, responseTime: now()),
            combined.response.part == nil, combined.pieces.count == 2, case .stored(let held) = combined.pieces[0],
            case .received(let rest) = combined.pieces[1], rest.lowerBound == 1
        else { return nil }
        return (combined.response, Int64(held.count))
    }

    /// True if the received body begins with the last stored byte, which is then removed from it.
    private func continues(_ body: BodyPipe, from writer: CacheWriter, at held: Int64) async -> Bool {
        guard var last = try? await writer.read(at: held - 1, upTo: 1), let expected = last.readInteger(as: UInt8.self),
            var chunk = try? await body.next(), chunk.readInteger(as: UInt8.self) == expected
        else { return false }
        body.putBack(chunk)
        return true
    }

    /// Joins stored parts after a new one was stored. Returns when they are joined, so that a client that has received the last byte finds
    /// the whole stored; a large body is joined in the background.
    func joinParts(after part: CacheEntry) async {
        guard let found = await joint(after: part) else { return }
        if found.joint.response.bodyLength <= Self.joinedInline { return await join(after: part) }
        Task { await join(after: part) }
    }

    /// Maximum number of bytes copied while a client waits for its last chunk: about 50 ms.
    private static let joinedInline = ByteCount.mib(64).bytes

    private func joint(after part: CacheEntry) async -> (joint: PartialResponse.Joint, parts: [CacheEntry])? {
        let parts = await lookup.entries(under: [part.key]).filter { $0.response.requestFields == part.response.requestFields }
        guard let index = parts.firstIndex(where: { $0.id == part.id }),
            let joint = PartialResponse.joint(parts.map(\.response), after: index)
        else { return nil }
        return (joint, parts)
    }

    /// Joins the parts into the whole if no byte is missing, otherwise the part with its neighbours where copying is cheap. If the joined
    /// whole contradicts the origin's digests, its parts are removed.
    private func join(after part: CacheEntry) async {
        await joins.enter(key: part.key)
        defer { joins.leave(key: part.key) }
        guard let (joint, parts) = await joint(after: part), let category = active.category(named: part.response.category),
            let writer = await cache.beginWrite(
                joining: joint.slices.map { (parts[$0.index], $0.range) }, expectedLength: joint.response.bodyLength, category: category)
        else { return }
        let groups = CacheGroups.all(in: joint.response.head.fields)
        do {
            if joint.response.part == nil {
                _ = try await cache.commit(writer, key: part.key, response: joint.response, groups: groups)
            } else {
                try await cache.commitPart(writer, key: part.key, groups: groups) { _ in joint.response }
            }
        } catch is WholeIsStored {
            return
        } catch is UnprovenBody {
            logger.warning(
                "stored parts do not make the whole that their origin names; they are dropped",
                metadata: ["url": "\(SecretParameters.redacted(url: part.key.url))"])
            try? await cache.removeParts(of: part.key)
        } catch {
            logger.failed("stored parts could not be joined", error: error)
        }
    }
}
