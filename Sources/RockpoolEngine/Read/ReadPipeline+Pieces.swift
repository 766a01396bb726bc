// The sources of an assembled body: transfers under way, stored parts, and requests for what is missing (docs/caching.md#ranges).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

extension ReadPipeline {
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

    // MARK: requests for what is missing

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

    // MARK: validation

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
