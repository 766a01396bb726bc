// What carries a connection's replies.

/// How replies leave.
enum ReplyWire {
    /// Bytes on a socket; the kernel can send files by itself.
    case plain
    /// Bytes through TLS.
    case tls
    /// Parts that become the frames of one HTTP/2 stream.
    case stream
}
