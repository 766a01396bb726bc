// What the records of hot replies have in common (docs/reference/admin-api.md#requests).
package import HTTPTypes
package import RockpoolCore

/// One message of a hot reply as records show it, made when the message is serialised.
package final class HotNote: Sendable {
    package let url: String
    package let upstream: String?
    package let category: String?
    package let cacheStatus: CacheStatus
    package let isStale: Bool
    package let error: String?
    package let status: Int
    package let response: HTTPFields
    /// Estimated size in bytes.
    package let size: Int
    /// Counts the bodies that are sent; nil where they are not counted.
    let served: ServedBytes?

    /// - Parameters:
    ///   - reply: the reply that the message is a form of.
    ///   - head: the message's head.
    ///   - error: the name of the error for which a stale response is sent, by RFC 9209.
    package init(_ reply: FastPathReply, head: ResponseHead, cacheStatus: CacheStatus, isStale: Bool, error: String?) {
        (url, category) = (reply.basis.request.url, reply.category)
        (upstream, served) = (reply.basis.upstream, reply.served)
        (self.cacheStatus, self.isStale, self.error) = (cacheStatus, isStale, error)
        status = head.status
        response = SecretFields.removed(from: head.fields)
        size = url.utf8.count + response.size
    }
}

extension HTTPFields {
    /// Bytes of names and values, estimated.
    package var size: Int { reduce(0) { $0 + $1.name.rawName.utf8.count + $1.value.utf8.count + 32 } }
}
