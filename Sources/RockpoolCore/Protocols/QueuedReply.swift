// The form of the reply to a queued write, by what its client can read (RFC 9110 §12.5.1; docs/outbox.md#client-view).
import HTTPTypes

/// The form in which a client is told that its write was queued.
package enum QueuedReply: Hashable, Sendable {
    /// 202 with the status document.
    case document
    /// 202 without a body, for a client that excludes JSON, or that reads every body in a format of its own.
    case empty
    /// 202 with a GraphQL response that has no data yet; optimistic: 200 with the data that the mutation's arguments show.
    case graphQL(isOptimistic: Bool)
    /// The answer of S3: 200 with an ETag, or 204.
    case s3(status: Int)
    /// The answer of a server of files, without a body: 201 or 204.
    case file(status: Int)

    /// Decides by the route's kind, then by the request.
    /// - Parameter isOfFile: true for a write to a file; a declared resource decides about its replies itself.
    package init(to request: RequestHead, route: Route?, isOfFile: Bool = false) {
        switch (route?.kind, request.method) {
        case (.graphql, _): self = .graphQL(isOptimistic: route?.offlineResponse == .optimistic)
        case (.s3, .put): self = .s3(status: 200)
        case (.s3, .delete): self = .s3(status: 204)
        case (.standard, _) where isOfFile && route?.offlineResponse == .optimistic:
            // A PUT that names a version replaces a file. Clients take 201 and 204 alike.
            let replaces = request.method == .put && request.fields.contains(.ifMatch)
            self = .file(status: request.method == .delete || replaces ? 204 : 201)
        default: self = Self.readsJSON(request) ? .document : .empty
        }
    }

    /// A client of S3 reads every body as XML, and names no media type.
    private static func readsJSON(_ request: RequestHead) -> Bool {
        if SignedRequest.usesSigV4(request) { return false }
        guard let accept = request.fields.value(of: "accept") else { return true }
        return MediaType.isAccepted([.contentType: "application/json"], by: accept)
    }
}
