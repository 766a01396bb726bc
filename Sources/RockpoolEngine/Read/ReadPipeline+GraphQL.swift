// Examines the responses of GraphQL endpoints, whose errors arrive with status 200 (docs/outbox.md#graphql).
import NIOCore
import RockpoolCore

extension ReadPipeline {
    /// The longest response that is read to find its errors.
    private static let examinedLimit = ByteCount.mib(4)

    /// Keeps a response with errors from being stored: it must not replace a good one, nor answer a later request.
    func examined(_ reply: OriginReply, for context: inout RequestContext) async -> OriginReply {
        guard (200...299).contains(reply.head.status), MediaType.isJSON(reply.head.fields) else { return reply }
        var reply = reply
        var bytes = ByteBuffer()
        do throws(TransferFailure) {
            while var chunk = try await reply.body.next() {
                bytes.writeBuffer(&chunk)
                guard Int64(bytes.readableBytes) <= Self.examinedLimit.bytes else {
                    reply.body = BodyPipe(bytes, then: reply.body)
                    return reply
                }
            }
        } catch {
            let broken = BodyPipe()
            broken.offer(bytes)
            broken.fail(error)
            reply.body = broken
            return reply
        }
        reply.body = BodyPipe(whole: bytes)
        let content = bytes.decoded(of: reply.head, upTo: Int(Self.examinedLimit.bytes)) ?? bytes
        if GraphQLResponse.error(in: Array(content.readableBytesView)) != nil { context.plan.store = .never }
        return reply
    }
}
