// The meaning of libcurl's error codes together with the recorded evidence (docs/outbox.md#evidence).
import CCurl
import RockpoolCore
import Testing

@testable import RockpoolNetwork

struct CurlFailureTests {
    typealias Evidence = CurlFailure.Evidence

    @Test(arguments: [
        (CURLE_COULDNT_RESOLVE_HOST, TransferFailure.Kind.dns), (CURLE_COULDNT_CONNECT, .refused),
        (CURLE_OPERATION_TIMEDOUT, .connectTimeout),
        (CURLE_PEER_FAILED_VERIFICATION, .tls), (CURLE_SSL_CONNECT_ERROR, .reset), (CURLE_WEIRD_SERVER_REPLY, .protocolError),
        (CURLE_GOT_NOTHING, .reset), (CURLE_SEND_ERROR, .reset), (CURLE_RECV_ERROR, .reset), (CURLE_PARTIAL_FILE, .reset),
    ])
    func codesBecomeKinds(code: CURLcode, kind: TransferFailure.Kind) { #expect(CurlFailure.of(code, transfer: Evidence()).kind == kind) }

    /// In TLS 1.3 the server verifies the client certificate after the client has completed its handshake.
    @Test(arguments: [
        ("OpenSSL SSL_read: error:0A00045C:SSL routines::tlsv13 alert certificate required, errno 0", TransferFailure.Kind.tls),
        ("OpenSSL SSL_read: error:0A000418:SSL routines::tlsv1 alert unknown ca, errno 0", .tls),
        ("OpenSSL SSL_read: error:0A000438:SSL routines::tlsv1 alert internal error, errno 0", .reset),
        ("OpenSSL SSL_read: error:0A000126:SSL routines::unexpected eof while reading, errno 0", .reset),
    ])
    func alertsAboutACertificateAreNamed(text: String, kind: TransferFailure.Kind) {
        for code in [CURLE_RECV_ERROR, CURLE_SEND_ERROR] { #expect(CurlFailure.of(code, transfer: Evidence(text: text)).kind == kind) }
    }

    @Test(arguments: [
        (Evidence(), TransferFailure.Kind.connectTimeout), (Evidence(hasConnected: true, headBytesSent: 9), .firstByteTimeout),
        (Evidence(hasConnected: true, headBytesSent: 9, isAnswered: true), .idleTimeout),
    ])
    func aTimeOutIsNamedByHowFarItCame(evidence: Evidence, kind: TransferFailure.Kind) {
        #expect(CurlFailure.of(CURLE_OPERATION_TIMEDOUT, transfer: evidence).kind == kind)
    }

    @Test(arguments: [
        (Evidence(), TransferFailure.Sent.no), (Evidence(hasConnected: true), .no), (Evidence(headBytesSent: 9), .no),
        (Evidence(hasConnected: true, headBytesSent: 9), .maybe), (Evidence(hasConnected: true, headBytesSent: 9, isBodySent: true), .yes),
        (Evidence(hasConnected: true, headBytesSent: 9, isAnswered: true), .yes), (Evidence(isBodySent: true), .no),
    ])
    func sentIsClaimedOnlyOnEvidence(evidence: Evidence, sent: TransferFailure.Sent) {
        #expect(CurlFailure.of(CURLE_RECV_ERROR, transfer: evidence).sent == sent)
    }

    @Test func aDeniedAddressAndACancellationSayWhatTheyAre() {
        let denied = CurlFailure.of(CURLE_COULDNT_CONNECT, transfer: Evidence(denied: "a loopback address"))
        #expect(denied == TransferFailure(kind: .denied, sent: .no, detail: "a loopback address"))
        #expect(CurlFailure.of(CURLE_ABORTED_BY_CALLBACK, transfer: Evidence(isCancelled: true)).kind == .cancelled)
        #expect(CurlFailure.of(CURLE_ABORTED_BY_CALLBACK, transfer: Evidence()).kind == .reset)
    }
}
