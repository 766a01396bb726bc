// Decides if one response of a bundle is stored, by the rules of RFC 9111 §3 for shared responses. The file is not trusted: its author may
// have invented everything in it.
import HTTPTypes
import RockpoolCore
import RockpoolStore

/// The decision about one `response` record.
struct BundleAdmission {
    let cache: CacheStore
    let lookup: EntryLookup
    let active: ActiveConfiguration
    let now: @Sendable () -> Timestamp
    let record: WARCHead
    /// The preceding request record.
    let request: (url: String, method: String, fields: HTTPFields)?

    /// The reason for a refusal.
    struct Refused: Error {
        let reason: String
        init(_ reason: String) { self.reason = reason }
    }

    /// An admitted response.
    struct Entry {
        var key: CacheKey
        var response: StoredResponse
        var category: CacheCategory
        var digest: PayloadDigest?
    }

    /// - Parameter bodyLength: bytes of the record's block after the head.
    func entry(for head: ResponseHead, bodyLength: Int64) throws(Refused) -> Entry {
        let asked = try askedFor()
        let head = try whole(head, bodyLength: bodyLength)
        let plan = active.routes.plan(for: asked)
        let context = StorageContext(policy: plan.policy, strategy: plan.strategy, rule: plan.store)
        let storage: StoragePlan
        switch Storability.decide(request: asked, response: head, context: context) {
        case .refuse(let reason): throw Refused("not storable: \(reason.rawValue)")
        case .store(let decided): storage = decided
        }
        guard storage.partition == .shared else { throw Refused("not storable: private") }
        let (sentAt, receivedAt) = try times(of: head)
        let category =
            plan.category ?? record[BundleField.category].flatMap { active.category(named: $0) }
            ?? active.category(named: CategoryGuess.name(for: head)) ?? .ephemeral
        let assigned = record[BundleField.assignedSeconds].flatMap { Int64($0) }.map { TimeSpan.seconds(max(0, $0)) }
        // It has no tick: as its times may be invented, it is older than every own write.
        var response = StoredResponse(
            head: storage.head(of: head, receivedAt: receivedAt),
            requestFields: lookup.veiled(Vary.selectingFields(response: head, request: asked) ?? [:]), requestTime: sentAt,
            responseTime: receivedAt,
            category: category.name, assignedTTL: plan.assignedTTL ?? assigned ?? storage.assignedTTL(named: nil))
        response.isInvalidated = record[BundleField.invalidated] == "true"
        age(&response)
        return Entry(key: CacheKey(asked), response: response, category: category, digest: try digest())
    }

    /// Sets `Age` past the freshness lifetime and past `stale-while-revalidate` (RFC 5861 §3): the file may have invented its freshness, so
    /// the entry is revalidated before use. While the origin is unreachable, the stale entry may be served.
    private func age(_ response: inout StoredResponse) {
        let freshness = Freshness.of(response, now: response.responseTime)
        let past = freshness.lifetime + (response.directives.staleWhileRevalidate ?? .zero) + .seconds(1)
        response.head.fields[.age] = String(max(past, freshness.age).seconds)
    }

    /// Throws unless `entry` is newer than the stored response it would replace.
    func refuseWhatIsNotNewer(_ entry: Entry) async throws(Refused) {
        let variant = Vary.variantKey(entry.response.requestFields)
        let found: [CacheEntry]
        do { found = try await cache.lookup(entry.key) } catch { throw Refused("the cache cannot be read: \(error)") }
        let stored = found.first { Vary.variantKey($0.response.requestFields) == variant }
        guard let stored, stored.response.responseTime >= entry.response.responseTime else { return }
        throw Refused(stored.response.responseTime == entry.response.responseTime ? "already stored" : "a newer copy is stored")
    }

    private func askedFor() throws(Refused) -> RequestHead {
        guard let url = record.targetURI else { throw Refused("its WARC-Target-URI is missing") }
        let isPaired = request?.url == url
        if isPaired, request?.method != "GET" { throw Refused("not storable: method") }
        var fields = isPaired ? HopByHop.stripped(request?.fields ?? [:]) : [:]
        fields[.hostField] = nil
        let asked: RequestHead
        do { asked = try RequestHead(url: url, fields: fields) } catch { throw Refused(error.detail) }
        guard !active.configuration.isOwnListener(asked.origin) else { throw Refused("its origin is a listener of Rockpool itself") }
        return asked
    }

    /// Returns the head without framing fields. The block must contain the whole body and nothing else.
    private func whole(_ head: ResponseHead, bodyLength: Int64) throws(Refused) -> ResponseHead {
        guard !head.fields.contains(.transferEncoding) else { throw Refused("its body is still in a transfer coding") }
        if let stated = head.fields[.contentLength], Int64(stated) != bodyLength {
            throw Refused("its Content-Length is not the length of its body")
        }
        if request == nil, head.fields.contains(.vary) { throw Refused("it varies, and its request is not the record before it") }
        return ResponseHead(status: head.status, fields: HopByHop.stripped(answer: head.fields))
    }

    /// Returns when the response was requested and received. A date in the future is refused, because the entry would count as newer than
    /// every response fetched until then.
    private func times(of head: ResponseHead) throws(Refused) -> (sentAt: Timestamp, receivedAt: Timestamp) {
        guard let date = record.date else { throw Refused("its WARC-Date cannot be read") }
        let received = record[BundleField.receivedAt].flatMap(RFC3339.parse) ?? date
        let now = self.now()
        let latest = now + Freshness.clockTolerance
        guard max(date, received) <= latest else { throw Refused("its WARC-Date is in the future") }
        let originated = head.fields[.date].flatMap { HTTPDate.parse($0) }
        guard originated.map({ $0 <= latest }) ?? true else { throw Refused("its Date is in the future") }
        let receivedAt = min(max(date, received), now)
        return (min(date, receivedAt), receivedAt)
    }

    private func digest() throws(Refused) -> PayloadDigest? {
        guard let text = record[WARCHead.payloadDigest] else { return nil }
        guard let digest = PayloadDigest(text) else { throw Refused("its WARC-Payload-Digest is neither SHA-256 nor SHA-1") }
        return digest
    }
}
