// Answers a read from stored parts, transfers under way and requests for the missing bytes, so that each byte of a representation is
// fetched once (RFC 9111 §3.4; docs/caching.md#ranges).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

extension ReadPipeline {
    /// A representation of which bytes are stored or on the way.
    struct Assembly: Sendable {
        let key: CacheKey
        let representation: Representation
        /// The newest stored or arriving response, as the whole.
        var whole: StoredResponse
        /// True if the upstream must confirm that the representation is current.
        let mustValidate: Bool
    }

    /// Sends a request for a range, unless the bytes are known or others are being requested: the first response names the representation,
    /// and with it the bytes that are still missing. Nil if the store must be read again.
    func fetchRange(for context: inout RequestContext, by forwarding: Forwarding) async -> Reply? {
        if let reply = await assembled(for: &context, by: forwarding) { return reply }
        var key = context.fetchKey(varyingBy: forwarding.varyNames)
        key.opensRanges = true
        guard mayAssemble(context, by: forwarding), context.identity.signature.isEmpty, let epoch = forwarding.epoch else {
            return await fetchAlone(for: &context, by: forwarding)
        }
        switch inFlight.join(at: key, since: epoch, mayFollow: true, now: updates.cache.moment()) {
        case .lookAgain: return nil
        case .alone: return await fetchAlone(for: &context, by: forwarding)
        case .lead(let fetch):
            context.trace.includes = updates.cache.ticks.next()
            let started = context
            fetch.start { [key] in
                var leading = started
                let outcome = await self.fetchOrRevalidate(for: &leading, by: forwarding)
                self.inFlight.leave(key: key)
                return FetchReport(outcome: outcome, steps: leading.trace.entries.dropFirst(started.trace.entries.count))
            }
            guard let report = await fetch.ledReport() else { return context.unanswered(.cancelled, offlineMiss: false) }
            for step in report.steps { context.trace.append(step) }
            return await reply(to: report.outcome, for: &context, by: forwarding)
        case .follow(let fetch):
            guard let report = await fetch.report() else { return context.unanswered(.cancelled, offlineMiss: false) }
            if case .answered(let fetched) = report.outcome, fetched.stored == nil {
                inFlight.note(uncollapsible: context.fetchBase, now: now())
                return await fetchAlone(for: &context, by: forwarding)
            }
            return nil
        }
    }

    /// Returns the reply from what is stored and on the way, with requests for what is missing; nil if nothing of the representation is, or
    /// if it cannot be assembled for this request.
    func assembled(for context: inout RequestContext, by forwarding: Forwarding) async -> Reply? {
        guard mayAssemble(context, by: forwarding), let assembly = assembly(for: context, by: forwarding) else { return nil }
        let (request, length) = (context.request, assembly.representation.length)
        let head: ResponseHead
        let range: Range<Int64>
        switch RangeReply.decide(request: request, stored: assembly.whole.head, bodyLength: length, boundary: "") {
        case .whole: (head, range) = (assembly.whole.head, 0..<length)
        case .part(let part, let wanted): (head, range) = (part, wanted)
        case .parts, .unsatisfiable, nil: return nil
        }
        let parts = assembly.representation.parts(in: forwarding.found, under: assembly.key)
        let gaps = range.gaps(
            between: parts.compactMap(\.response.heldRange) + running.ranges(of: assembly.representation, key: assembly.key))
        // A signature may cover the range, so that another one cannot be requested with it.
        let mayRequest = context.isReachable && (context.identity.signature.isEmpty || context.exchange.signer != nil)
        guard gaps.isEmpty || mayRequest, context.isReachable || !assembly.mustValidate else { return nil }
        return await assemble(
            range, of: assembly, head: head, gaps: gaps, parts: parts, for: &context, by: forwarding)
    }

    /// True if a request may be answered with bytes of several transfers: a plain read of a whole or of one range.
    private func mayAssemble(_ context: RequestContext, by forwarding: Forwarding) -> Bool {
        var whole = context.request
        for name in [HTTPField.Name.range, .ifRange, .ifMatch] { whole.fields[name] = nil }
        let wishes = CacheControl(request: whole.fields)
        return forwarding.selected == nil && context.exchange.body == nil && context.bodyDigest == nil
            && context.plan.strategy != .networkOnly
            && RequestCollapsing.obstacleToFollowing(whole, hasBody: false, wishes: wishes) == nil
            && (ByteRangeSet(context.request.fields)?.ranges.count ?? 1) == 1
            && (context.request.fields.contains(.range) || inFlight.underWay(at: context.fetchKey(varyingBy: forwarding.varyNames)) == nil)
    }

    /// Returns the newest representation of which a part is stored or on the way, and which the request may be answered with.
    private func assembly(for context: RequestContext, by forwarding: Forwarding) -> Assembly? {
        let identity = context.identity
        var plain = context.request
        plain.fields[.ifMatch] = nil
        // Only the origin can judge `If-Match`: it does when the representation is validated.
        let condition = context.isReachable ? context.request.fields[.ifMatch] : nil
        var all = forwarding.found.compactMap { entry -> Assembly? in
            guard entry.response.part != nil || condition != nil, let representation = Representation(of: entry.response),
                let whole = entry.response.asWhole
            else { return nil }
            switch lookup.reuse(of: [whole], for: plain, rules: forwarding.rules, now: now()) {
            case .fresh, .stale:
                return Assembly(key: entry.key, representation: representation, whole: whole, mustValidate: condition != nil)
            case .validate: return Assembly(key: entry.key, representation: representation, whole: whole, mustValidate: true)
            case .complete, .none, .gatewayTimeout: return nil
            }
        }
        for partition in running.isEmpty ? [] : StoragePartition.readable(by: identity.partition) {
            for part in running.parts(of: context.key(in: partition)) {
                guard case .arriving(let response, _) = part.state, let whole = response.asWhole else { continue }
                let isNobodys = partition == .shared && identity.partition != nil && !Storability.isShareable(whole.directives)
                let outcome = RequestCollapsing.outcome(
                    of: .stored(whole, partition), for: lookup.selecting(for: context.request, among: [whole]),
                    identity: identity.partition,
                    now: now())
                let mustValidate: Bool
                switch outcome {
                case .share: mustValidate = isNobodys || !identity.signature.isEmpty || context.plan.strategy == .networkFirst
                case .release(.mustValidate): mustValidate = true
                case .release: continue
                }
                all.append(Assembly(key: part.key, representation: part.representation, whole: whole, mustValidate: mustValidate))
            }
        }
        if let condition { all.removeAll { EntityTag(condition) != $0.representation.tag } }
        return all.max { ($0.whole.responseTime, $1.mustValidate ? 1 : 0) < ($1.whole.responseTime, $0.mustValidate ? 1 : 0) }
    }

    // MARK: - The reply

    private func assemble(
        _ range: Range<Int64>, of assembly: Assembly, head: ResponseHead, gaps: [Range<Int64>], parts: [CacheEntry],
        for context: inout RequestContext, by forwarding: Forwarding
    ) async -> Reply? {
        var head = head
        var ahead: (start: Int64, piece: AssembledBody.Piece)?
        context.trace.includes = assembly.whole.asked
        if let gap = gaps.first, assembly.mustValidate || gap.lowerBound == range.lowerBound {
            // The request carries the tag, so that its response also confirms the representation.
            switch await piece(at: gap, of: assembly, for: context, by: forwarding) {
            case .piece(let piece):
                ahead = (gap.lowerBound, piece)
                context.trace.record(.fetched(status: 206))
                context.trace.record(.stored)
            case .other(let outcome): return await replaced(by: outcome, for: &context, by: forwarding)
            }
        } else if assembly.mustValidate {
            let outcome = await validated(assembly, for: &context, by: forwarding)
            guard case .answered(let fetched) = outcome, fetched.head.status == 304 else {
                return await replaced(by: outcome, for: &context, by: forwarding)
            }
            fetched.claim?.take()?.abandon()
            for entry in parts.prefix(Self.freshenedParts) {
                await updates.freshen(entry, by: fetched.head, for: context, forwarding: forwarding)
            }
            head.fields[.date] = HTTPDate.format(now())
            context.trace.cacheStatus = CacheStatus(hit: false, fwd: .stale, fwdStatus: 304)
            context.trace.verdict = .revalidated
        }
        if let gap = gaps.first {
            context.trace.verdict = .miss
            context.trace.includes = updates.cache.ticks.next()
            context.trace.cacheStatus = CacheStatus(hit: false, fwd: .partial, fwdStatus: gap == range ? nil : 206, stored: true)
        } else if !assembly.mustValidate {
            context.trace.verdict = .hit
            context.trace.cacheStatus = .hit(Freshness.of(assembly.whole, now: now()))
        }
        head.fields[.age] = assembly.mustValidate ? nil : String(max(0, Freshness.of(assembly.whole, now: now()).age.seconds))
        let body = body(of: range, ahead: ahead, of: assembly, for: context, by: forwarding)
        return Reply(head: head, body: .stream(body, length: Int64(range.count)), trace: context.trace)
    }

    /// Number of stored parts that a 304 updates.
    private static let freshenedParts = 8

    /// Returns the bytes of `range`, of which a piece may have been requested before.
    private func body(
        of range: Range<Int64>, ahead: (start: Int64, piece: AssembledBody.Piece)? = nil, of assembly: Assembly,
        for context: RequestContext,
        by forwarding: Forwarding
    ) -> AssembledBody {
        let isFirst = ahead?.start == range.lowerBound
        let waiting = isFirst ? nil : ahead.map { (start: $0.start, body: LeaderBody($0.piece.source), end: $0.piece.end) }
        return AssembledBody(range, first: isFirst ? ahead?.piece : nil) { wanted in
            if let waiting {
                if wanted.lowerBound == waiting.start, let source = waiting.body.take() {
                    return .success(AssembledBody.Piece(source: source, end: waiting.end))
                }
            }
            switch await self.piece(at: wanted, of: assembly, for: context, by: forwarding) {
            case .piece(let piece): return .success(piece)
            case .other(.failed(let failure)): return .failure(failure)
            case .other(.answered(let fetched)):
                guard let source = fetched.claim?.take() else { return .failure(.replaced) }
                // A request for all bytes may be answered as one for the whole.
                if wanted.lowerBound == 0, fetched.head.status == 200,
                    Representation(of: fetched.head, length: fetched.length) == assembly.representation
                {
                    return .success(AssembledBody.Piece(source: source, end: assembly.representation.length))
                }
                source.abandon()
                return .failure(.replaced)
            case .other(.validated): return .failure(.replaced)
            }
        }
    }

    /// Registers the rest of a stored beginning as requested; nil if another request fetches bytes of it.
    func claim(restOf entry: CacheEntry) -> RunningParts.Claim? {
        guard let representation = Representation(of: entry.response), let held = entry.response.heldRange,
            running.parts(of: entry.key).isEmpty
        else { return nil }
        return RunningParts.Claim(held.upperBound..<representation.length, of: representation, key: entry.key, in: running)
    }

    /// Registers a response that is being stored, so that other requests read along with it or have it end where they begin.
    func register(_ fetched: FetchedResponse, as number: Int, for context: RequestContext, by forwarding: Forwarding) {
        guard context.request.method == .get, case .shared(let body) = fetched.body, let (response, key) = fetched.copy,
            context.bodyDigest == nil,
            var whole = response.asWhole, let representation = Representation(of: response.head, length: fetched.length)
        else { return }
        whole.bodyLength = representation.length
        let range = response.part?.range ?? 0..<representation.length
        let assembly = Assembly(key: key, representation: representation, whole: whole, mustValidate: false)
        if context.identity.signature.isEmpty || context.exchange.signer != nil {
            body.mayBeCut { position in
                self.body(of: range.lowerBound + position..<range.upperBound, of: assembly, for: context, by: forwarding)
            }
        }
        running.add(
            RunningParts.Part(number: number, key: key, representation: representation, range: range, state: .arriving(response, body)))
    }

    // MARK: - The sources of the bytes

    /// The answer to a request for bytes of a representation.
    enum PieceOutcome {
        case piece(AssembledBody.Piece)
        /// The upstream has not answered with those bytes.
        case other(FetchOutcome)
    }

    /// Returns the source of the first bytes of `range`.
    func piece(at range: Range<Int64>, of assembly: Assembly, for context: RequestContext, by forwarding: Forwarding) async -> PieceOutcome
    {
        // Another request may begin to fetch the same bytes at any time; a few turns suffice.
        for _ in 0..<8 {
            switch running.way(to: range, of: assembly.representation, key: assembly.key, now: now()) {
            case .read(let reader, let end): return .piece(AssembledBody.Piece(source: reader, end: min(end, range.upperBound)))
            case .wait(let fetch):
                guard await fetch.report() != nil else { return .other(.failed(.cancelled)) }
            case .none(let next):
                // Transfers are removed after their bytes have been stored, so the store is read after them.
                let parts = assembly.representation.parts(in: await lookup.entries(under: [assembly.key]), under: assembly.key)
                if let piece = await responses.piece(at: range, among: parts) { return .piece(piece) }
                let starts = parts.compactMap(\.response.heldRange?.lowerBound).filter { $0 > range.lowerBound }
                let gap = range.lowerBound..<min(range.upperBound, next, starts.min() ?? .max)
                let fetch = CoalescedFetch()
                guard let part = running.claim(gap, of: assembly.representation, key: assembly.key, by: fetch) else { continue }
                let outcome = await fetched(part, by: fetch, for: context, by: forwarding)
                // The whole has come and has readers already: it is under way now, or stored.
                if range.lowerBound > 0, case .other(.answered(let answer)) = outcome, answer.head.status == 200,
                    Representation(of: answer.head, length: answer.length) == assembly.representation
                {
                    continue
                }
                return outcome
            }
        }
        return .other(.failed(.copyLost))
    }

    // MARK: - Requests for what is missing

    private func fetched(
        _ part: RunningParts.Part, by fetch: CoalescedFetch, for context: RequestContext, by forwarding: Forwarding
    ) async -> PieceOutcome {
        fetch.start {
            let outcome = await self.fetch(part, for: context, by: forwarding)
            self.running.remove(part.number)
            return FetchReport(outcome: outcome, steps: [])
        }
        guard let report = await fetch.ledReport() else { return .other(.failed(.cancelled)) }
        guard case .answered(let fetched) = report.outcome else { return .other(report.outcome) }
        // The origin may have ignored the range.
        if fetched.head.status == 200, Representation(of: fetched.head, length: fetched.length) == part.representation,
            part.range.lowerBound > 0, case .shared(let body) = fetched.body, let rest = body.reader(from: part.range.lowerBound)
        {
            fetched.claim?.take()?.abandon()
            return .piece(AssembledBody.Piece(source: rest, end: part.representation.length))
        }
        guard part.isAnswered(by: fetched.head), let source = fetched.claim?.take() else { return .other(report.outcome) }
        let end = PartialResponse.part(of: fetched.head)?.range?.upperBound ?? part.range.upperBound
        return .piece(AssembledBody.Piece(source: source, end: end))
    }

    /// Requests the bytes of a part if the representation is still current, and starts to store them.
    private func fetch(_ part: RunningParts.Part, for context: RequestContext, by forwarding: Forwarding) async -> FetchOutcome {
        var asking = context
        asking.exchange.request = context.request.unconditional
        asking.exchange.request.fields[.range] = "bytes=\(part.range.lowerBound)-\(part.range.upperBound - 1)"
        asking.exchange.request.fields[.ifRange] = part.representation.tag.fieldValue
        let sentAt = updates.cache.moment()
        do {
            let received = try await fetch(
                asking.request, body: .none, for: &asking, stored: forwarding.found.map(\.response))
            // A 206 of another representation takes the place of the stored parts.
            guard [200, 206].contains(received.head.status) else {
                return .answered(FetchedResponse(alone: received))
            }
            return .answered(await keep(received, sentAt: sentAt, for: asking, at: context.fetchBase, by: forwarding))
        } catch {
            return .failed(error)
        }
    }

    /// Stores a response, and registers it for other requests while it arrives.
    /// - Parameter base: The key of the client's own request.
    private func keep(
        _ received: OriginReply, sentAt: Moment, for context: RequestContext, at base: CacheKey, by forwarding: Forwarding
    ) async -> FetchedResponse {
        let number = running.number()
        var proved = context
        proved.identity = credentials.current(context.identity)
        let fetched = await responses.store(received, sentAt: sentAt, among: forwarding.found, for: &proved) { [inFlight, running] in
            inFlight.touch(base)
            running.remove(number)
        }
        register(fetched, as: number, for: proved, by: forwarding)
        return fetched
    }

    // MARK: - Validation

    /// Sends the client's request with the tag of the representation as its condition.
    func validated(_ assembly: Assembly, for context: inout RequestContext, by forwarding: Forwarding) async -> FetchOutcome {
        var asking = context
        asking.exchange.request.fields[.ifNoneMatch] = assembly.representation.tag.fieldValue
        let sentAt = updates.cache.moment()
        do {
            let received = try await fetch(asking.request, body: .none, for: &asking, stored: forwarding.found.map(\.response))
            context.trace = asking.trace
            if received.head.status == 304 { return .answered(FetchedResponse(alone: received)) }
            asking.exchange.request = context.request
            return .answered(await keep(received, sentAt: sentAt, for: asking, at: context.fetchBase, by: forwarding))
        } catch {
            context.trace = asking.trace
            return .failed(error)
        }
    }

    /// Returns the reply when the upstream has answered with something else than the missing bytes; nil if the store must be read again.
    func replaced(by outcome: FetchOutcome, for context: inout RequestContext, by forwarding: Forwarding) async -> Reply? {
        if case .answered(let fetched) = outcome {
            // The response to another range than the client's: the client's own request is sent.
            let isOther = fetched.head.status == 206 || fetched.head.status == 416
            if isOther, fetched.stored == nil || !fetched.head.isPart(askedFor: context.request) {
                fetched.claim?.take()?.abandon()
                return await fetchAlone(for: &context, by: forwarding.anew)
            }
            if fetched.head.status == 200, let (head, body) = fetched.part(for: context.request) {
                context.trace.verdict = .miss
                context.trace.cacheStatus = CacheStatus(hit: false, fwd: .partial, fwdStatus: 200, stored: true)
                return Reply(head: head, body: body, trace: context.trace)
            }
        }
        return await reply(to: outcome, for: &context, by: forwarding)
    }
}

extension ResponseStore {
    /// Returns the stored bytes at the beginning of `range`; nil if there are none.
    fileprivate func piece(at range: Range<Int64>, among parts: [CacheEntry]) async -> AssembledBody.Piece? {
        for entry in parts {
            guard let held = entry.response.heldRange, held.contains(range.lowerBound) else { continue }
            let end = min(held.upperBound, range.upperBound)
            guard let body = try? await cache.body(of: entry)?.slice(range.lowerBound - held.lowerBound..<end - held.lowerBound)
            else { continue }
            cache.use(entry)
            return AssembledBody.Piece(source: StoredBodySource(body, in: cache), end: end)
        }
        return nil
    }
}

extension ResponseHead {
    /// True if the response is exactly the one range of `request`.
    fileprivate func isPart(askedFor request: RequestHead) -> Bool {
        guard case .part(let range, of: let length?)? = PartialResponse.part(of: self), let asked = ByteRangeSet(request.fields),
            asked.ranges.count == 1
        else { return false }
        return asked.ranges[0].resolved(length: length) == range
    }
}

extension RunningParts.Part {
    /// True for a 206 with the first bytes of this part, of the same representation.
    func isAnswered(by head: ResponseHead) -> Bool {
        guard Representation(of: head, length: nil) == representation, case .part(let answered, _)? = PartialResponse.part(of: head) else {
            return false
        }
        return answered.lowerBound == range.lowerBound && answered.upperBound <= range.upperBound
    }
}

extension RunningParts {
    /// The bytes that are requested or arriving, as positions in the whole.
    func ranges(of representation: Representation, key: CacheKey) -> [Range<Int64>] {
        parts(of: key).filter { $0.representation == representation }.map(\.range)
    }
}

extension Representation {
    /// The entries that hold bytes of this representation.
    func parts(in entries: [CacheEntry], under key: CacheKey) -> [CacheEntry] {
        entries.filter { $0.key == key && Representation(of: $0.response) == self }
    }
}

extension TransferFailure {
    /// The origin has another representation by now, so that the bytes already sent cannot be continued.
    static let replaced = TransferFailure(kind: .protocolError, sent: .yes, detail: "the resource has changed while it was being read")
}
