// The status document of a queued write, served by the proxy on every authority (docs/reference/behaviour.md#status-document;
// RFC 9110 §15.3.3).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

/// `/.well-known/rockpool/operations/{id}[?wait=seconds]`.
private struct StatusPath {
    let id: String
    /// 0…60.
    let waitSeconds: Int64

    init?(_ target: String) {
        let prefix = QueuedWrite.statusPrefix
        guard target.hasPrefix(prefix) else { return nil }
        let parts = target.dropFirst(prefix.count).split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        id = String(parts[0])
        let wait = parts.count < 2 ? nil : parts[1].split(separator: "&").first { $0.hasPrefix("wait=") }
        waitSeconds = wait.flatMap { Int64($0.dropFirst(5)) }.map { min(max($0, 0), 60) } ?? 0
    }
}

extension OperationDocuments {
    /// Returns the reply to a request for a status document; nil for any other request.
    func statusDocument(for request: RequestHead, trace: Trace) async -> Reply? {
        guard request.target.hasPrefix(RequestTarget.ownPath) else { return nil }
        guard let path = StatusPath(request.target), !path.id.isEmpty else {
            return Reply(Problem(.notFound, detail: "only /.well-known/rockpool/operations/{id} is answered here"), trace)
        }
        guard request.method == .get || request.method == .head else {
            var problem = Problem(.methodNotAllowed, detail: "a status document can only be read (GET, HEAD)")
            problem.allow = "GET, HEAD"
            return Reply(problem, trace)
        }
        let deadline = ContinuousClock.now + .seconds(path.waitSeconds)
        var (before, hasLooked): (OperationState?, Bool) = (nil, false)
        while true {
            let version = events.version
            do {
                guard let operation = try await data.operation(id: path.id), isSender(of: operation, request: request) else {
                    // Another node of the fleet may have accepted it a moment ago.
                    if !hasLooked, data.isOfFleet {
                        hasLooked = true
                        await data.catchUp(ifOlderThan: .zero, within: .seconds(1))
                        continue
                    }
                    return Reply(Problem(.notFound, detail: "no operation \(path.id)"), trace)
                }
                // An operation that was parked or in conflict at the first read may continue, so the wait goes on.
                let isStuck = operation.state == .parked || operation.state == .conflicted
                let isSettled =
                    operation.state.hasEnded || operation.state == .dead || (isStuck && before.map { $0 != operation.state } == true)
                before = operation.state
                if isSettled || ContinuousClock.now >= deadline {
                    return document(operation, json: try await statusDocument(of: operation), isHead: request.method == .head, trace: trace)
                }
            } catch {
                return Reply(Problem(.notQueueable, detail: "the outbox cannot be read: \(error)", retryAfter: 5), trace)
            }
            _ = await events.change(after: version, before: deadline)
        }
    }

    /// True if `request` carries a credential of the principal that sent the operation. A write without a credential is readable by every
    /// client that knows its id.
    private func isSender(of operation: QueuedWrite, request: RequestHead) -> Bool {
        let origin = operation.request.origin
        let rule = active.routes.upstream(for: origin, target: operation.request.target)?.identity ?? .auto
        guard let sender = operation.principal, rule != .single else { return true }
        // A credential is identified relative to the operation's origin, whatever authority the document is requested from.
        let asked = RequestHead(method: .get, origin: origin, target: operation.request.target, fields: request.fields)
        let reader = credentials.identity(of: asked, rule: rule).principal
        return reader.map { credentials.resolved($0) } == credentials.resolved(sender)
    }

    private func document(_ operation: QueuedWrite, json: JSONValue, isHead: Bool, trace: Trace) -> Reply {
        var head = ResponseHead(status: 200, fields: [.contentType: "application/json", .cacheControl: "no-store"])
        head.fields[.rockpoolOperation] = operation.id
        head.fields[.rockpoolState] = operation.state.rawValue
        if !operation.state.hasEnded, operation.state != .dead { head.fields[.retryAfter] = "2" }
        let body = ByteBuffer(bytes: json.serialized())
        return Reply(head: head, body: isHead ? .none(length: Int64(body.readableBytes)) : .bytes(body), trace: trace)
    }
}
