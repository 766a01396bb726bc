// How the sending of a reply ended, for the access log.

/// The end of sending a reply.
package struct ReplyEnd: Hashable, Sendable {
    /// Number of body bytes that the client's connection accepted. If a stored file broke off, accurate to one mebibyte.
    package var bytes: Int64
    /// The cause of an incomplete reply: the RFC 9209 name of an upstream failure, or `clientLeft`. Nil if everything was sent.
    package var error: String?

    package static let clientLeft = "client_left"

    package init(bytes: Int64, error: String? = nil) {
        self.bytes = bytes
        self.error = error
    }
}
