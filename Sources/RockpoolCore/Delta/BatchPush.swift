// Many writes in one request, and what its answer says of each (features P3; contract §2 `sync.push`).
import HTTPTypes

/// The wire form of a batch: `{"operations": […]}` → `{"results": [{"id", "status", "headers", "body"}]}`.
package enum BatchPush {
    /// Operations of one request at most.
    package static let limit = 100
    /// Bytes of one operation's body at most; larger ones are sent by themselves.
    package static let bodyLimit: Int64 = 65_536

    /// Fields of an operation that its member carries, that the batch has of its own, or that bear on nothing it does. With any other it
    /// goes by itself.
    private static let carried: Set<String> = [
        "if-match", "if-none-match", "content-type", "idempotency-key", "authorization", "cookie", "x-api-key", "api-key", "x-auth-token",
        "accept", "accept-encoding", "accept-language", "user-agent", "host", "content-length", "origin", "referer", "date", "via",
        "cdn-loop",
        "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-platform", "priority",
    ]

    /// What an answer to a batch says.
    package enum Verdict: Hashable, Sendable {
        /// Its results by operation id; an operation without one is as if its answer had been lost.
        case each([String: Result])
        /// Nothing of it was taken: the upstream does not know such batches, or not this one. Sent one by one instead.
        case refused(String)
        /// The answer is every operation's own: throttled, failed, unauthorized, a portal.
        case common
    }

    /// The answer to one operation.
    package struct Result: Hashable, Sendable {
        package var head: ResponseHead
        package var body: [UInt8]
    }

    /// An operation as a member of the batch; nil when its body is not JSON, so that it must go by itself.
    package static func member(_ operation: Operation, body: [UInt8]) -> JSONValue? {
        let fields = operation.request.fields
        guard fields.allSatisfy({ carried.contains($0.name.canonicalName) }) else { return nil }
        var members = JSONObject([
            ("id", .string(operation.id)), ("idempotencyKey", .string(operation.idempotencyKey)),
            ("method", .string(operation.request.method.rawValue)), ("entity", .string(operation.request.target)),
        ])
        for (name, field) in [("ifMatch", HTTPField.Name.ifMatch), ("ifNoneMatch", .ifNoneMatch), ("contentType", .contentType)] {
            members[name] = fields[field].map { .string($0) }
        }
        if !body.isEmpty {
            guard let value = try? JSONValue.parse(body) else { return nil }
            members["body"] = value
        }
        return .object(members)
    }

    /// The body of the request.
    package static func body(of members: [JSONValue]) -> [UInt8] {
        JSONValue.object(JSONObject([("operations", .array(members))])).serialized()
    }

    /// What the answer says.
    package static func verdict(_ head: ResponseHead, body: [UInt8]) -> Verdict {
        switch head.status {
        case 401, 407, 408, 419, 421, 425, 429: return .common
        case 400...499, 501, 505: return .refused("the batch was refused: \(head.status)")
        case 200...299 where !MediaType.isPage(head.fields): return .each(results(in: body))
        default: return .common
        }
    }

    /// What becomes of one operation of the batch: the outcome of its attempt, the beginning of its answer's body and the disposition,
    /// by the same table as if it had been sent alone.
    package static func disposition(
        of operation: Operation, after batch: AttemptOutcome, body: [UInt8], context: ReplayContext, now: Timestamp, random: Double
    ) -> (outcome: AttemptOutcome, body: [UInt8], change: Disposition) {
        let judge = { (outcome: AttemptOutcome, body: [UInt8]) in
            (
                outcome, body,
                OperationMachine.disposition(of: operation, after: outcome, body: body, context: context, now: now, random: random)
            )
        }
        guard case .answered(let head) = batch else { return judge(batch, []) }
        let unknown = AttemptOutcome.failed(
            TransferFailure(kind: .protocolError, sent: .yes, detail: "the batch's answer does not say what became of it"))
        switch verdict(head, body: body) {
        case .each(let results):
            guard let result = results[operation.id] else { return judge(unknown, []) }
            return judge(.answered(result.head), result.body)
        case .refused(let detail):
            return (batch, [], Disposition(state: .pending, nextAttemptAt: now, countsAsAnswered: false, detail: detail))
        case .common:
            let common = judge(batch, body)
            // A redirect or an error about the batch ends no operation; that nobody may write without a credential ends those without one.
            let isOwn = [.pending, .parked, .uncertain].contains(common.2.state) || [401, 407, 419].contains(head.status)
            return isOwn ? common : judge(unknown, [])
        }
    }

    private static func results(in body: [UInt8]) -> [String: Result] {
        let results = (try? JSONValue.parse(body))?["results"]?.array ?? []
        return Dictionary(results.compactMap(result)) { first, _ in first }
    }

    private static func result(_ value: JSONValue) -> (String, Result)? {
        guard let id = value["id"]?.string, let status = value["status"]?.integer, (200...599).contains(status) else { return nil }
        var head = ResponseHead(status: Int(status), fields: [.contentType: "application/json"])
        for (name, value) in value["headers"]?.object ?? JSONObject() {
            guard let name = HTTPField.Name(name), let text = value.identifier, HTTPField.isValidValue(text) else { continue }
            head.fields[name] = text
        }
        return (id, Result(head: head, body: value["body"].map { $0.isNull ? [] : $0.serialized() } ?? []))
    }
}
