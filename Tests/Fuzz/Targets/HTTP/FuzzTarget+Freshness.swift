// A stored response at a given time: its age arithmetic, and its permitted use (RFC 9111 §3, §4).
import HTTPTypes
import RockpoolCore

extension FuzzTarget {
    /// Lines: the times of request and response, now (milliseconds), the status, the fields, an empty line, the request's fields.
    static func freshness(_ input: FuzzInput) throws(BrokenProperty) {
        let (asked, came, now) = (moment(input, 0), moment(input, 1), moment(input, 2))
        let response = input.fields(4)
        let request = RequestHead(
            method: .get, origin: OriginAddress(scheme: .http, host: "a.test"), target: "/", fields: input.fields(response.next).fields)
        let head = ResponseHead(status: Int(min(599, max(200, input.number(3)))), fields: response.fields)
        let stored = StoredResponse(head: head, requestTime: asked, responseTime: came)
        try holdsArithmetic(of: stored, now: now)
        try holdsStoring(head, request)
        try holdsReuse(stored, request, now: now)
    }

    private static func moment(_ input: FuzzInput, _ index: Int) -> Timestamp { Timestamp(milliseconds: input.number(index)) }

    private static func holdsArithmetic(of stored: StoredResponse, now: Timestamp) throws(BrokenProperty) {
        let freshness = Freshness.of(stored, now: now)
        try hold(freshness.lifetime >= .zero && freshness.age >= .zero, "neither lifetime nor age is negative")
        let later = Freshness.of(stored, now: now + .seconds(1))
        // What was received in the future, by a clock that was set back since, has no lifetime for a while.
        let isFuture = stored.responseTime > now
        try hold(later.age >= freshness.age && (isFuture || later.lifetime == freshness.lifetime), "time makes it older and nothing else")
        let terms = AgeArithmetic(stored, now: now)
        try hold(terms.correctedInitialAge == max(terms.apparentAge, terms.correctedAgeValue), "the terms explain the initial age")
        try hold(terms.freshness.age == terms.correctedInitialAge + terms.residentTime, "the terms explain the age")
        try hold(terms.lines.count == 8 && (try? JSONValue.parse(terms.json.serialized())) != nil, "the terms can be shown")
    }

    private static func holdsStoring(_ head: ResponseHead, _ request: RequestHead) throws(BrokenProperty) {
        let (directives, _) = CacheControl.governing(in: head.fields)
        guard case .store(let plan) = Storability.decide(request: request, response: head, context: StorageContext()) else { return }
        try hold(!directives.noStore || directives.mustUnderstand, "what must not be stored is not")
        try hold(directives.isPrivate != .all, "what is somebody's own is not stored for all")
        try hold(!CacheControl(request: request.fields).noStore, "what its request forbids is not stored")
        try hold(plan.partition == .shared, "what nobody signed for is everybody's")
        try hold(!head.fields.contains(.setCookie) || plan.stripped.contains(.setCookie), "no cookie is stored")
    }

    private static func holdsReuse(_ stored: StoredResponse, _ request: RequestHead, now: Timestamp) throws(BrokenProperty) {
        let wishes = CacheControl(request: request.fields)
        switch Reuse.decide(candidates: [stored], request: request, context: ReuseContext(), now: now) {
        case .fresh(let index, let freshness):
            try hold(index == 0 && freshness.isFresh, "what is served as fresh is fresh")
            try hold(stored.directives.noCache != .all, "what must be validated is not served without")
        case .stale(let index, let freshness, let reason):
            try hold(index == 0 && !freshness.isFresh, "what is served as stale is stale")
            try hold(!stored.directives.forbidsStale, "what must not be served stale is not: \(reason)")
        case .validate, .complete:
            try hold(!wishes.onlyIfCached, "nothing is sent for who wants what is stored")
        case .none, .gatewayTimeout: break
        }
        if case .none = Reuse.decide(candidates: [], request: request, context: ReuseContext(), now: now) { return }
        try hold(wishes.onlyIfCached, "nothing comes of nothing")
    }
}
