// Tunnels through a parent proxy that wants Negotiate or NTLM: libcurl makes the handshake, which takes several round trips on one
// connection, and leaves the connection (RFC 4559, RFC 9110 §9.3.6).
import CCurl
import Glibc
import NIOCore
import NIOPosix
import RockpoolCore
import RockpoolEngine

/// A tunnel to be opened by libcurl.
struct NegotiatedTunnel: Sendable {
    let parent: ParentProxy
    let credential: ParentCredential
    let host: String
    let port: Int

    /// Each handshake occupies a thread.
    private static let threads: NIOThreadPool = {
        let threads = NIOThreadPool(numberOfThreads: 4)
        threads.start()
        return threads
    }()

    /// Returns the descriptor of the connection, for the caller to close. Fails with `TransferFailure`.
    func open(within limit: TimeSpan, on loop: any EventLoop) -> EventLoopFuture<CInt> {
        Self.threads.runIfActive(eventLoop: loop) { try connect(within: limit) }
    }

    private func connect(within limit: TimeSpan) throws(TransferFailure) -> CInt {
        // The state of TLS to the parent would stay in libcurl.
        guard parent.kind == .http else {
            throw failure(.denied, "tunnels with \(credential.auth.rawValue) need a parent proxy by http://")
        }
        guard let easy = EasyHandle() else { throw failure(.reset, "no memory for a connection") }
        defer { easy.cleanUp() }
        let text = CurlErrorText()
        text.attach(to: easy)
        easy.set(CURLOPT_NOSIGNAL, 1)
        easy.set(CURLOPT_PROXY, "http://\(parent.address)")
        easy.set(CURLOPT_NOPROXY, "")
        easy.set(credential)
        easy.set(CURLOPT_HTTPPROXYTUNNEL, 1)
        easy.set(CURLOPT_CONNECT_ONLY, 1)
        easy.set(CURLOPT_URL, "http://\(host.contains(":") ? "[\(host)]" : host):\(port)/")
        easy.set(CURLOPT_CONNECTTIMEOUT_MS, Int(clamping: limit.milliseconds))
        easy.set(CURLOPT_TIMEOUT_MS, Int(clamping: limit.milliseconds))
        let code = unsafe curl_easy_perform(easy.raw)
        let status = easy.number(CURLINFO_HTTP_CONNECTCODE)
        guard code == CURLE_OK, let socket = easy.socket else {
            if status >= 300 { throw failure(.reset, "the parent proxy answered \(status)") }
            let kind: TransferFailure.Kind = code == CURLE_OPERATION_TIMEDOUT ? .connectTimeout : .reset
            throw failure(kind, "no tunnel through the parent proxy: \(text.text)")
        }
        // libcurl closes its own descriptor; the connection stays open through the copy.
        let copy = fcntl(socket, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { throw failure(.reset, "too many open files") }
        return copy
    }

    private func failure(_ kind: TransferFailure.Kind, _ detail: String) -> TransferFailure {
        TransferFailure(kind: kind, sent: .no, detail: detail)
    }
}
