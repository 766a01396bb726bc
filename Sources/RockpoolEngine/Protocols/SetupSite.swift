// `http://rockpool.local/` through the proxy: the setup page and the certificate, and nothing else (docs/guide/https.md#setup-page).
import FoundationEssentials
import HTTPTypes
import NIOCore
import RockpoolCore

/// Answers requests to the host that stands for this proxy.
struct SetupSite: Sendable {
    let active: ActiveConfiguration

    /// Returns the reply to a request for the setup host; nil for another host.
    func reply(to request: RequestHead, _ trace: inout Trace) -> Reply? {
        guard request.origin.host == SetupDocument.host else { return nil }
        let isReading = request.method == .get || request.method == .head
        let path = String(request.target.prefix { $0 != "?" })
        guard isReading, let document = SetupDocument(rawValue: path), request.origin.port == request.origin.scheme.defaultPort else {
            return refused(isReading ? .notFound : .methodNotAllowed, because: "\(SetupDocument.host) has the setup page only", &trace)
        }
        let certificate = FileManager.default.contents(atPath: active.configuration.storage.stateDir + "/ca/ca.pem")
        let content = SetupContent(
            pem: certificate.map { String(decoding: $0, as: UTF8.self) }, url: "http://\(SetupDocument.host)/",
            isTrusted: request.origin.scheme == .https)
        guard let bytes = content.bytes(of: document) else {
            return refused(.notFound, because: "there is no certificate authority yet; make it with: rockpool ca init", &trace)
        }
        var head = ResponseHead(status: 200, fields: [.contentType: document.mediaType, .cacheControl: "no-store"])
        head.fields[.contentSecurityPolicy] = SetupDocument.policy
        if let name = document.fileName { head.fields[.contentDisposition] = "attachment; filename=\"\(name)\"" }
        return Reply(head: head, body: .bytes(ByteBuffer(bytes: bytes)), trace: trace)
    }

    private func refused(_ type: ProblemType, because detail: String, _ trace: inout Trace) -> Reply {
        trace.verdict = .refused
        trace.record(.refused(problem: type.rawValue))
        return Reply(Problem(type, detail: detail), trace)
    }
}
