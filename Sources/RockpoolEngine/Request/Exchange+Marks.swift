// Takes the marks of waiting entries off what clients send back (docs/reference/configuration.md#resources, `mark`).
import HTTPTypes
import NIOCore
import RockpoolCore

extension Exchange {
    /// The size in bytes up to which a body is searched.
    private static let markLimit = Int.mib(8)

    /// Removes from a body of JSON the member that only lists of this proxy have. A body stays as it is where it is coded, and where a digest or a
    /// signature is over it.
    /// - Throws: the failure that interrupted the body.
    mutating func removeMarks(of resource: Resource?) async throws(TransferFailure) {
        guard let resource, resource.mark != nil, MediaType.isJSON(request.fields), !request.fields.contains(.contentEncoding),
            GatewayAddress.mayReplaceLinks(of: request.fields), SignedRequest(request)?.isOfOneRequest != true,
            var bytes = try await collected(upTo: Self.markLimit)
        else { return }
        held.release()
        if let value = try? JSONValue.parse(Array(bytes.readableBytesView)), let plain = resource.unmarked(value) {
            bytes = ByteBuffer(bytes: plain.serialized())
        }
        take(bytes)
    }

    /// Takes these bytes as the whole body.
    mutating func take(_ bytes: ByteBuffer) { (body, bodyLength) = (BodyPipe(whole: bytes), Int64(bytes.readableBytes)) }
}
