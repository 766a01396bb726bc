// Alerts of a failed handshake that show the client's distrust of the proxy's certificate (RFC 8446 §6.2).
import NIOCore
import NIOSSL

/// Detects that a client rejected the certificate.
enum TrustAlert {
    /// The alerts about the certificate.
    private static let names = [
        "unknown_ca", "bad_certificate", "certificate_unknown", "certificate_expired", "certificate_revoked", "unsupported_certificate",
        "access_denied", "decrypt_error",
    ]

    /// The alerts by their numbers on the wire.
    private static let numbers: [UInt8: String] = [
        42: "bad_certificate", 43: "unsupported_certificate", 44: "certificate_revoked", 45: "certificate_expired",
        46: "certificate_unknown", 48: "unknown_ca", 49: "access_denied", 51: "decrypt_error",
    ]

    /// Returns the name of the plaintext alert in `record`. OpenSSL sends one in TLS 1.3 too, which BoringSSL reports as a broken record.
    static func name(of record: ByteBuffer) -> String? {
        let bytes = record.readableBytesView
        guard bytes.count >= 7, bytes.starts(with: [21, 3, 3, 0, 2, 2]) else { return nil }
        return numbers[bytes[bytes.startIndex + 6]]
    }

    /// Returns the alert in `error`, or `closed` for a client that closed without an alert; nil when the handshake failed for another
    /// reason.
    static func name(in error: any Error) -> String? {
        // BoringSSL's names are like `SSLV3_ALERT_BAD_CERTIFICATE`, `TLSV1_ALERT_UNKNOWN_CA`.
        let text = "\(error)".lowercased()
        if let name = names.first(where: { text.contains("alert_" + $0) }) { return name }
        guard case NIOSSLError.handshakeFailed = error else { return nil }
        return text.contains("eof") || text.contains("connection_reset") ? "closed" : nil
    }
}
