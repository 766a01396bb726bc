// The lines of the access log, one for each answered request (docs/guide/operating.md#access-log).
import Logging
package import RockpoolCore

/// A request as its first line names it, before it is an exchange.
package struct RequestLine: Sendable {
    let method: String
    let url: String
    let at: Timestamp
    let began = ContinuousClock.now

    /// - Parameter url: as the client wrote it; nothing of it is checked.
    package init(method: String, url: String, at: Timestamp) { (self.method, self.url, self.at) = (method, url, at) }

    /// A request of which not even the first line can be read.
    package init(unreadableAt moment: Timestamp) { self.init(method: "-", url: "-", at: moment) }
}

/// What the access log is still to have of a connection.
package enum Unlogged: Sendable {
    /// The line of the next request, which is not read yet.
    case unread
    /// The line of a request that has no reply and is no exchange yet.
    case request(RequestLine)
    /// Nothing: an exchange writes the line of the current request, or it is written.
    case nothing
}

extension Engine {
    /// True if every exchange is recorded, in the access log or as spans.
    package var recordsEveryExchange: Bool { logsAccess || configuration.tracing != nil }

    /// True while an access log is written.
    package var logsAccess: Bool { accessLog != nil && configuration.log.access != .off }

    func log(_ trace: Trace, status: Int, end: ReplyEnd, took: Duration) {
        if logsAccess {
            write(
                AccessLine(
                    at: trace.startedAt, method: trace.method, url: trace.url, status: status, bytes: end.bytes,
                    seconds: took / .seconds(1), verdict: trace.verdict.rawValue, cacheStatus: trace.cacheStatus?.fieldValue,
                    error: end.error ?? trace.proxyStatus?.error.rawValue))
        }
        logger.debug(
            "exchange",
            metadata: [
                "method": "\(trace.method)", "url": "\(trace.url.prefix { $0 != "?" })", "status": "\(status)",
                "verdict": "\(trace.verdict.rawValue)", "cache": "\(trace.cacheStatus?.fieldValue ?? "-")",
            ])
    }

    /// Writes the line of a request that was refused before it became an exchange.
    package func log(_ line: RequestLine, answered reply: Reply, end: ReplyEnd) {
        log(
            line, status: reply.head.status, bytes: end.bytes, verdict: reply.trace.verdict.rawValue,
            error: end.error ?? reply.trace.proxyStatus?.error.rawValue)
    }

    /// Writes the line of a request that opened a tunnel.
    package func log(_ line: RequestLine, opened status: Int) {
        log(line, status: status, bytes: 0, verdict: TunnelRecord.verdict, error: nil)
    }

    private func log(_ line: RequestLine, status: Int, bytes: Int64, verdict: String, error: String?) {
        guard logsAccess else { return }
        write(
            AccessLine(
                at: line.at, method: line.method, url: line.url, status: status, bytes: bytes,
                seconds: (ContinuousClock.now - line.began) / .seconds(1), verdict: verdict, cacheStatus: nil, error: error))
    }

    private func write(_ line: AccessLine) { line.text(configuration.log.access).map { accessLog?($0) } }
}
