// The transports of a connection's replies.

/// The transport of replies.
enum ReplyWire {
    /// Bytes on a socket; the kernel can send files directly.
    case plain
    /// Bytes through TLS.
    case tls
    /// Parts that become the frames of one HTTP/2 stream.
    case stream
}
