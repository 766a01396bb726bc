// Lists of a bucket with the objects that their client has written (docs/outbox.md#s3).
import HTTPTypes
import NIOCore
import RockpoolCore

extension FileReads {
    /// Answers a list of a bucket; nil for another request, and where no write concerns the upstream.
    func readObjects(_ context: inout RequestContext) async -> Reply? {
        guard let upstream = context.plan.upstream?.name, context.request.method == .get else { return nil }
        overlay.noteListing(at: upstream)
        guard overlay.covers(upstream: upstream) else { return nil }
        // A coded body could not be changed.
        context.exchange.request.fields[.acceptEncoding] = nil
        var reply = await ownWrites.reads.readServerState(&context)
        guard context.trace.verdict != .failed, reply.head.status == 200, !reply.head.fields.contains(.contentEncoding),
            let bytes = await ownWrites.bytes(of: &reply), let list = ObjectListing(context.request, body: Array(bytes.readableBytesView))
        else { return marked(reply, for: context) }
        let fold = overlay.fold(
            upstream: upstream, principal: context.identity.principal, deliveredSince: context.trace.includes ?? .first)
        let folded = list.folded(with: fold, etag: \.tag)
        if !folded.isClear { reply = reply.dirty }
        guard let body = folded.body else { return reply }
        for name in [HTTPField.Name.eTag, .contentLength, .age] { reply.head.fields[name] = nil }
        if fold.writes.contains(where: { !$0.isDelivered }) {
            (reply.head.fields[.rockpoolState], reply.head.fields[.cacheControl]) = ("pending", "no-store")
        }
        reply.body = .bytes(ByteBuffer(bytes: body))
        return reply
    }
}
