// Sends one operation: its lease, a read before it where necessary, and the exchange with the upstream (docs/outbox.md#wire-rule,
// docs/outbox.md#detection, docs/outbox.md#answers; RFC 9110 §15.4).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

extension Replayer {
    func send(_ id: String) async throws -> ReplayMachine.Event {
        guard duty.permits(summary(of: id)) else { return .failed(id: id) }
        if let held = try await ReplayBudget(of: self).hold(id) { return held }
        guard var operation = try await data.lease(id: id, now: now()) else {
            let now = try await known(id)
            // A pending operation without a lease has a blocker that the machine does not know: retry later, not at once.
            return now.state == .pending ? .failed(id: id) : .settled(active.summary(of: now))
        }
        FailPoint.leaseCommitted.reached()
        attempts.withLock { $0[id] = SentAttempt() }
        guard let upstream = active.routes.upstream(named: operation.upstream) else {
            return .unsendable(operation, Disposition(state: .pending, nextAttemptAt: now() + .seconds(1), countsAsAnswered: false))
        }
        await follow(&operation, upstream: upstream)
        var outgoing: OutboundWrite
        do {
            outgoing = try await outbound.outgoing(operation, to: upstream)
        } catch {
            return unsendable(operation, disposition: error.disposition)
        }
        switch try await precheck(operation, outgoing: &outgoing, upstream: upstream) {
        case .clear: break
        case .moved(let disposition): return unsendable(operation, disposition: disposition)
        case .failed(let failure): return unread(operation, failure: failure, outgoing: outgoing)
        }
        var sent = operation
        sent.request = outgoing.head
        let before: StateBeforeAction?
        do { before = try await stateBefore(operation, outgoing: outgoing, upstream: upstream) } catch {
            return unread(operation, failure: error, outgoing: outgoing)
        }
        if operation.isCreate { await itemsBefore.note(operation, as: outgoing.head, sentAt: operation.firstSentAt ?? now()) }
        let sentAt = data.moment()
        let span = traces.begin(operation, sending: &outgoing.head, at: sentAt.at)
        let (outcome, received, wire) = await exchange(outgoing, of: operation.sequence, upstream: upstream)
        if let span { traces.end(span, outcome, at: now()) }
        var attempt = SentAttempt(operation, outcome, received, wire, outgoing)
        attempt.sentAt = sentAt
        attempt.before = before
        attempt.outgoing = before == nil && operation.lostAt == nil ? nil : outgoing
        attempts.withLock { [attempt] in $0[id] = attempt }
        var mapping: ServerMapping?
        if operation.isCreate, case .answered(let head) = outcome, (200...299).contains(head.status) || head.status == 303 {
            mapping = await lookup.created(
                by: head, json: try? JSONValue.parse(received), to: outgoing.head, resource: outgoing.resource,
                partition: operation.principal)
        }
        return .attempted(sent, outcome, body: received, mapping: mapping, reading: await reading(of: attempt))
    }

    /// The read before the write has failed: nothing of the write was sent.
    private func unread(_ operation: QueuedWrite, failure: TransferFailure, outgoing: OutboundWrite) -> ReplayMachine.Event {
        attempts.withLock { $0[operation.id] = SentAttempt(operation, .failed(failure), [], nil, outgoing) }
        return .attempted(operation, .failed(failure), body: [])
    }

    private func unsendable(_ operation: QueuedWrite, disposition: Disposition) -> ReplayMachine.Event {
        attempts.withLock { $0[operation.id]?.record = AttemptRecord(error: disposition.detail, sent: .no) }
        return .unsendable(operation, disposition)
    }

    // MARK: - The read before

    /// The result of a read before sending.
    enum Precheck {
        /// No other change was found, or none can be determined: the write may be sent, with the condition that the read supplied.
        case clear
        /// The entity has changed: nothing is sent.
        case moved(Disposition)
        /// The upstream could not be read.
        case failed(TransferFailure)
    }

    func precheck(_ operation: QueuedWrite, outgoing: inout OutboundWrite, upstream: Upstream) async throws -> Precheck {
        let head = outgoing.head
        guard let resource = outgoing.resource, !head.isConditional, [.put, .patch, .delete].contains(head.method),
            let (base, isAnswer) = try await known(of: operation, resource: resource),
            // A body in a file is too large to carry a version that is looked for.
            ConflictPrecheck.isNeeded(head, body: outgoing.body.inMemory ?? [], base: base, resource: resource, isAnswer: isAnswer)
        else { return .clear }
        // The query, not the path, may name the item.
        let target = active.routes.plan(for: head).entity?.target ?? head.path
        switch await outbound.look(at: target, of: operation, like: head, upstream: upstream) {
        case .shown(.gone, _):
            if head.method == .delete { return .clear }
            return .moved(.seenAhead(.editDelete, detail: "the upstream has none of it any more"))
        case .shown(.present(let theirs, let answer), _):
            let base = try await known(of: operation, resource: resource, seeing: theirs)?.base ?? base
            if ConflictPrecheck.hasMoved(from: base, to: theirs, resource: resource, isAnswer: isAnswer, by: head.method) {
                let kind = head.method == .delete ? OperationReason.deleteEdit : .editEdit
                return .moved(.seenAhead(kind, detail: "the upstream's copy has changed since its client saw it"))
            }
            if resource.version == "etag", let tag = EntityTag.condition(in: answer.fields[.eTag]) { outgoing.head.fields[.ifMatch] = tag }
            return .clear
        // The write will be refused with the same status, or the entity cannot be read: send the write.
        case .refused(let status) where status < 500 && status != 429: return .clear
        case .refused(let status): return .failed(TransferFailure(kind: .unavailable, sent: .no, detail: "a look before it: \(status)"))
        case .failed(let failure): return .failed(TransferFailure(kind: failure.kind, sent: .no, detail: failure.detail))
        }
    }

    /// Returns the state that must still be current: the upstream's answer to the earlier operation that this one builds on, with all
    /// members that the upstream added; without such an operation or answer, the base that the client has seen. Nil where it is unknown.
    /// - Parameter theirs: what the upstream shows now: it tells what an earlier PUT without an answer has made of the members that it left out.
    func known(
        of operation: QueuedWrite, resource: Resource, seeing theirs: Conflict.Side? = nil
    ) async throws -> (base: Conflict.Side, isAnswer: Bool)? {
        guard let sequence = operation.baseSequence,
            let earlier = try await data.operations(sequences: [sequence]).first, earlier.state == .delivered
        else { return try await data.base(of: operation.sequence).map { ($0, false) } }
        if let answer = earlier.answeredRepresentation, await showsItem(answerTo: earlier) { return (answer, true) }
        // Members that the upstream has computed since differ from what the client has seen: only merging tells them from another client's
        // changes without asking a person or dropping the write.
        guard resource.conflict == .fieldMerge, earlier.result != nil, !earlier.isCreate, operation.request.method != .delete,
            [.put, .patch].contains(earlier.request.method)
        else { return nil }
        guard let pinned = try await data.base(of: operation.sequence) else { return nil }
        // The earlier one may have been sent on another state than its client knew, such as that after an action, or on the answer to the
        // create of its item, which has members that the create had not: its effect is on that one, and as the upstream has made it.
        guard EntityTag.condition(in: earlier.result?.head.fields[.eTag]) == nil,
            case let before = try await known(of: earlier, resource: resource, seeing: theirs)?.base,
            let after = effect(of: earlier, on: before, resource: resource, seeing: theirs), after.body != pinned.body
        else { return (pinned, false) }
        try await data.rebase([operation.sequence], to: after)
        return (after, false)
    }

    /// Returns what a write has made of a representation; nil if that cannot be computed.
    private func effect(
        of write: QueuedWrite, on before: Conflict.Side?, resource: Resource, seeing theirs: Conflict.Side?
    ) -> Conflict.Side? {
        let shown = theirs.flatMap { try? JSONValue.parse($0.body) }
        var value = before.flatMap { try? JSONValue.parse($0.body) }
        // Nothing is compared with what nobody has seen.
        if before == nil, write.request.method == .put { value = shown }
        let folded = FoldedWrite(write, action: nil, in: data)
        guard let value, case .present(var made, _, _) = ItemFold.fold(value, with: [folded], resource: resource) else { return nil }
        if let shown, let put = PartialPut(write.request, body: folded.body, resource: resource, before: value) {
            made = put.corrected(made, by: shown)
        }
        return Conflict.Side(
            body: made.serialized(), contentType: before?.contentType ?? "application/json",
            etag: before?.etag == Conflict.Side.listedMark ? Conflict.Side.listedMark : nil)
    }

    /// False if the answer to a write is a body of another kind, such as `{"ok": true}`.
    private func showsItem(answerTo write: QueuedWrite) async -> Bool {
        guard let result = write.result, let bare = try? await outbound.bare(write) else { return true }
        let answered = AnsweredWrite(
            request: bare.head, body: Array(bare.body), answer: result.head, answerBody: result.body,
            entity: active.routes.plan(for: bare.head).entity)
        return !answered.isForeign
    }

    // MARK: - The exchange

    /// Maximum size in bytes of a response body that is kept as the operation's result.
    fileprivate static let resultLimit = Int.mib(1)
    /// Maximum time to read a response body; the status alone decides the outcome.
    fileprivate static let resultLimitTime = Duration.seconds(10)
    /// Maximum number of redirects that keep the method.
    private static let redirectLimit = 3

    /// Sends the request and reads the beginning of the response body. After 301, 307 and 308, which mean that nothing was done, the same
    /// request is sent to the new target if it is within the origin.
    func exchange(
        _ outgoing: OutboundWrite, of sequence: Int64, upstream: Upstream
    ) async -> (AttemptOutcome, [UInt8], WireEvidence?) {
        var head = outgoing.head
        for turn in 0... {
            do throws(TransferFailure) {
                let request = head
                var answer = try await underLease(of: data, for: [sequence]) { () throws(TransferFailure) in
                    try await self.upstreams.send(
                        request, body: outgoing.body, upstream: upstream, freshConnection: outgoing.needsFreshConnection, isPaid: true)
                }
                FailPoint.answerHeadRead.reached()
                if let failure = answer.lostBefore {
                    answer.body.abandon()
                    throw failure
                }
                if turn < Self.redirectLimit, let target = answer.head.sameRequestElsewhere(from: head) {
                    _ = await answer.beginning()
                    head.target = target
                    continue
                }
                try await upstreams.checkOwn(&answer, to: request, upstream: upstream, isLive: false)
                let (answered, body) = await answer.beginning()
                return (.answered(answered), body, answer.wire)
            } catch {
                return (.failed(error), [], error.wire)
            }
        }
        return (.failed(TransferFailure(kind: .protocolError, sent: .yes)), [], nil)
    }

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

    // MARK: - The effect of an uncertain write

    /// Probes the upstream for the effect of a write, by a safe request with the operation's own credential (docs/outbox.md#uncertain
    /// *uncertain*).
    func look(_ id: String) async throws -> ReplayMachine.Event {
        guard let operation = try await data.operation(id: id) else { throw DataStoreError.notFound(id: id) }
        let (effect, shown) = await effect(of: operation)
        if case .present(let mapping) = effect {
            var found = shown
            // A list may show less of an item than the item itself.
            if let mapping { found = await lostAnswers.read(mapping.url, of: operation) }
            attempts.withLock { [found] in $0[id, default: SentAttempt()].found = found }
        }
        return .looked(operation, effect)
    }

    /// - Returns: the effect, and what the upstream has answered.
    private func effect(of operation: QueuedWrite) async -> (ObservedEffect, OperationResult?) {
        guard let upstream = active.routes.upstream(named: operation.upstream),
            let outgoing = try? await outbound.outgoing(operation, to: upstream),
            let resource = outgoing.resource, let sent = try? outgoing.body.inMemory ?? outbound.bytes(of: operation),
            let search = EffectProbe(outgoing.head, body: sent, resource: resource)
        else { return (.unknown, nil) }
        let known = !operation.isCreate ? [] : await itemsBefore.ids(for: operation, as: outgoing.head)
        var question = search.question
        question.fields[upstream.idempotency.name] = nil
        guard let answer = try? await upstreams.send(question, body: .none, upstream: upstream) else { return (.unknown, nil) }
        let (head, body) = await answer.beginning()
        let effect = search.judge(head, body: body) { id in
            known?.contains(id) != false
                || data.localIDs.alias(upstream: upstream.name, collection: operation.collection ?? "", id: id) != nil
        }
        return (effect, OperationResult(head: head, body: body))
    }
}

extension QueuedWrite {
    /// The representation in the upstream's answer to a delivered write; nil without one.
    var answeredRepresentation: Conflict.Side? {
        guard state == .delivered, let result, [200, 201].contains(result.head.status), MediaType.isJSON(result.head.fields),
            (try? JSONValue.parse(result.body)) != nil
        else { return nil }
        return Conflict.Side(body: result.body, contentType: result.head.fields[.contentType], etag: result.head.fields[.eTag])
    }
}

extension Disposition {
    fileprivate static func seenAhead(_ kind: OperationReason, detail: String) -> Disposition {
        Disposition(state: .conflicted, reason: kind, countsAsAnswered: false, detail: detail)
    }
}

extension OriginReply {
    /// Returns the head and the beginning of the body, decoded from `gzip` or `deflate`.
    func beginning() async -> (head: ResponseHead, body: [UInt8]) {
        let (head, content) = head.readable(ByteBuffer(bytes: await body.beginning()), upTo: Replayer.resultLimit)
        return (head, Array(content.readableBytesView))
    }
}

extension BodyPipe {
    /// Returns the beginning of a result; none if it is longer than `Replayer.resultLimit` or takes longer than `Replayer.resultLimitTime`.
    fileprivate func beginning() async -> [UInt8] {
        // Most answers are here by now, and need no timer.
        if let whole = takeWhole(upTo: Replayer.resultLimit) { return Array(whole.readableBytesView) }
        let timer = Task {
            try await Task.sleep(for: Replayer.resultLimitTime)
            abandon()
        }
        defer { timer.cancel() }
        return ((try? await collect(upTo: Replayer.resultLimit))?.bytes).map { Array($0.readableBytesView) } ?? []
    }
}

extension ResponseHead {
    /// Returns the target to which this redirect moves the request, with the same method and origin; nil for any other response.
    fileprivate func sameRequestElsewhere(from request: RequestHead) -> String? {
        guard [301, 307, 308].contains(status), let location = fields[.location],
            case .sameOrigin(let target) = RedirectTarget(location, from: request), target != request.target
        else { return nil }
        return target
    }
}

// MARK: - The result of a sending

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

extension OutboundRequest.Body {
    /// The bytes, nil if they are not in memory.
    var inMemory: [UInt8]? {
        if case .bytes(let bytes) = self { Array(bytes.readableBytesView) } else { nil }
    }
}
