// One sending of an operation, from its response to its record.
import HTTPTypes
import RockpoolCore
import RockpoolStore

/// The result of one sending, until it is recorded.
struct SentAttempt: Sendable {
    var record = AttemptRecord(sent: .maybe)
    var result: OperationResult?
    /// The request as it was sent, secrets included; never stored.
    var head: RequestHead?
    /// The operation as it was leased.
    var operation: QueuedWrite?
    /// The body as it was sent, nil if it was not in memory; and when.
    var body: [UInt8]?
    var sentAt: Moment?
    /// The entity's state before this action; nil for any other write, and where it is not known.
    var before: StateBeforeAction?
    /// The action as it was sent; nil where later writes need not follow it.
    var outgoing: OutboundWrite?
    /// The entity as the look showed it that has found the write's effect; nil otherwise.
    var found: OperationResult?

    init() {}

    init(_ operation: QueuedWrite, _ outcome: AttemptOutcome, _ received: [UInt8], _ wire: WireEvidence?, _ outgoing: OutboundWrite) {
        head = outgoing.head
        body = outgoing.body.inMemory.map { Array($0) }
        self.operation = operation
        record = outcome.attempt
        result = outcome.result(body: received)
        record.isFreshConnection = wire?.isFreshConnection
        record.bytesSent = wire?.bytesSent
    }
}

extension AttemptOutcome {
    /// Response fields that carry secrets; removed because clients other than the writer may read the status document.
    private static let secretFields = ["Set-Cookie", "Set-Cookie2", "WWW-Authenticate", "Authentication-Info", "Proxy-Authenticate"]
        .compactMap { HTTPField.Name($0) }

    /// The attempt's record, for its row.
    var attempt: AttemptRecord {
        switch self {
        case .answered(let head): AttemptRecord(status: head.status, sent: .yes)
        case .failed(let failure): AttemptRecord(error: failure.proxyErrorName, sent: failure.sent)
        }
    }

    /// Returns the response as the operation's result; nil without one.
    func result(body: [UInt8]) -> OperationResult? {
        guard case .answered(var head) = self else { return nil }
        for name in Self.secretFields { head.fields[name] = nil }
        return OperationResult(head: head, body: body)
    }
}

extension Replayer {
    /// Returns how the answer to an attempt is read: by the rule of its route or resource.
    func reading(of attempt: SentAttempt) async -> AnswerReading {
        guard let head = attempt.head, let result = attempt.result else { return AnswerReading() }
        var write = AnsweredWrite(request: head, body: attempt.body, answer: result.head, answerBody: result.body)
        let plan = active.routes.plan(for: head)
        (write.entity, write.success) = (plan.entity, plan.success)
        var reading = AnswerReading(success: plan.success, isForeign: write.isForeign, isLogout: plan.route?.logout == true)
        reading.isJudged = true
        reading.namesEntity = names(plan.entity?.resource, in: result.head, to: head)
        reading.knowsEntity = await knowsEntity(of: attempt)
        return reading
    }

    /// False if the upstream has none of what an edit changes, and nothing shows that it ever had: a wrong path, not a deletion.
    private func knowsEntity(of attempt: SentAttempt) async -> Bool {
        guard let operation = attempt.operation, let head = attempt.head, attempt.result?.head.status == 404,
            head.method == .put || head.method == .patch, operation.lostAt == nil, operation.baseETag == nil,
            operation.baseSequence == nil, !operation.request.isConditional, head.target == operation.request.target
        else { return true }
        do {
            if try await data.base(of: operation.sequence) != nil { return true }
        } catch { return true }
        var read = head
        read.method = .get
        let plan = active.routes.plan(for: read)
        let partitions = StoragePartition.readable(by: operation.principal)
        let copies = await lookup.entries(under: partitions.map { lookup.key(of: read, plan: plan, in: $0) })
        return copies.contains { (200...299).contains($0.response.head.status) }
    }

    /// True if a redirect leads to an item or a collection of a declared resource.
    private func names(_ resource: Resource?, in answer: ResponseHead, to request: RequestHead) -> Bool {
        guard let resource, let location = answer.fields[.location],
            case .sameOrigin(let target) = RedirectTarget(location, from: request)
        else { return false }
        let shown = RequestHead(method: .get, origin: request.origin, target: target, fields: [:])
        return active.routes.plan(for: shown).entity?.resource == resource
    }
}
