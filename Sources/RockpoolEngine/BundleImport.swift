// Imports a bundle: every response passes the same checks as a fetched one (ISO 28500:2017; docs/caching.md#bundles *Admission*).
import HTTPTypes
package import NIOCore
package import RockpoolCore
package import RockpoolStore

/// Reads a WARC piece by piece. An import loses no stored data: an entry is replaced only by a complete, newer one with a correct digest.
package struct BundleImport {
    /// The use of the current record.
    private enum Work {
        case ignore
        case request(HTTPBlockHead)
        case head(HTTPBlockHead)
        case body(Writing)
    }

    /// An admitted response that is being written.
    private struct Writing {
        let writer: CacheWriter
        let key: CacheKey
        let response: StoredResponse
        let stated: PayloadDigest?
        var hash: PayloadHash
        var length: Int64 = 0
    }

    private let cache: CacheStore
    private let lookup: EntryLookup
    private let active: ActiveConfiguration
    private let now: @Sendable () -> Timestamp
    private var reader = WARCReader()
    private var record: WARCHead?
    private var work = Work.ignore
    /// Bytes of the record's block read so far.
    private var seen: Int64 = 0
    /// The latest request, which selected the response that follows it.
    private var request: (url: String, method: String, fields: HTTPFields)?
    /// The report so far.
    package private(set) var report = BundleReport()

    /// Creates an import into `cache`, under the configuration in force.
    package init(cache: CacheStore, reads: ReadPipeline, active: ActiveConfiguration, now: @escaping @Sendable () -> Timestamp) {
        self.cache = cache
        lookup = reads.lookup
        self.active = active
        self.now = now
    }

    /// Reads the next bytes. Throws `WARCFault` where they are not a WARC; responses read before stay imported.
    package mutating func take(_ bytes: ByteBuffer) async throws {
        var rest = Array(bytes.readableBytesView)[...]
        while let event = try reader.next(in: &rest) {
            switch event {
            case .head(let head): begin(head)
            case .block(let part): await take(part)
            case .end: await end()
            }
        }
    }

    /// Ends the import. Throws `WARCFault` when the file ended early.
    package mutating func finish() throws -> BundleReport {
        try reader.finish()
        return report
    }

    private mutating func begin(_ head: WARCHead) {
        record = head
        seen = 0
        switch head.type {
        case "request" where head.isHTTP: work = .request(HTTPBlockHead(isRequest: true))
        case "response" where head.isHTTP: work = .head(HTTPBlockHead(isRequest: false))
        case "revisit": skip("it refers to a body stored elsewhere")
        default: work = .ignore
        }
        if head.type != "response" { request = nil }
    }

    private mutating func skip(_ reason: String) {
        report.passed(over: reader.current, url: record?.targetURI ?? "", reason: reason)
        work = .ignore
    }

    private mutating func take(_ part: ArraySlice<UInt8>) async {
        seen += Int64(part.count)
        var rest = part
        switch work {
        case .ignore: return
        case .request(var lines):
            let message = try? lines.take(from: &rest)
            work = .ignore
            if case .request(let method, let fields) = message {
                request = (record?.targetURI ?? "", method, fields)
            } else if rest.isEmpty {
                work = .request(lines)
            }
        case .head(var lines):
            do {
                let message = try lines.take(from: &rest)
                work = .head(lines)
                guard case .response(let head) = message else { return }
                guard !(100...199).contains(head.status) else { return await take(again: rest) }
                await admit(head, bodyLength: (record?.contentLength ?? 0) - seen + Int64(rest.count))
                await take(body: rest)
            } catch {
                skip(error.detail)
            }
        case .body: await take(body: rest)
        }
    }

    /// Reads the bytes after an interim response's head.
    private mutating func take(again rest: ArraySlice<UInt8>) async {
        seen -= Int64(rest.count)
        await take(rest)
    }

    private mutating func take(body part: ArraySlice<UInt8>) async {
        guard case .body(var writing) = work, !part.isEmpty else { return }
        let bytes = ByteBuffer(bytes: part)
        writing.hash.update(bytes)
        writing.length += Int64(part.count)
        do {
            guard try await writing.writer.append(bytes) else { return skip(Self.noRoom) }
            work = .body(writing)
        } catch {
            skip("it could not be written: \(error)")
        }
    }

    private mutating func end() async {
        defer { if record?.type == "response" { request = nil } }
        switch work {
        case .ignore, .request: return
        case .head: skip("its HTTP head is not complete")
        case .body(let writing):
            if let stated = writing.stated, stated != writing.hash.digest { return skip("its digest is not that of its body") }
            do {
                _ = try await cache.commit(
                    writing.writer, key: writing.key, response: writing.response,
                    groups: CacheGroups.all(in: writing.response.head.fields))
                report.took(writing.length)
                work = .ignore
            } catch {
                skip("it could not be stored: \(error)")
            }
        }
    }

    private static let noRoom = "there is no room for it, or it is larger than its category allows"

    private mutating func admit(_ head: ResponseHead, bodyLength: Int64) async {
        guard let record else { return }
        let admission = BundleAdmission(cache: cache, lookup: lookup, active: active, now: now, record: record, request: request)
        do throws(BundleAdmission.Refused) {
            let entry = try admission.entry(for: head, bodyLength: bodyLength)
            try await admission.refuseWhatIsNotNewer(entry)
            guard let writer = await cache.beginWrite(expectedLength: bodyLength, category: entry.category, for: entry.key) else {
                throw .init(Self.noRoom)
            }
            work = .body(
                Writing(
                    writer: writer, key: entry.key, response: entry.response, stated: entry.digest,
                    hash: PayloadHash(entry.digest?.algorithm ?? .sha256)))
        } catch {
            skip(error.reason)
        }
    }
}

// MARK: - Admission

/// Decides if one `response` record of a bundle is stored, by the rules of RFC 9111 §3 for shared responses. The file is not trusted: its
/// author may have invented everything in it.
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

// MARK: - Report

/// The outcome of an import (docs/reference/admin-api.md#bundles `cache import`).
package struct BundleReport: Hashable, Sendable {
    /// A response that was not stored.
    package struct Skipped: Hashable, Sendable {
        /// The number of its record, counted from 1.
        package var record: Int
        package var url: String
        package var reason: String
    }

    /// Maximum number of skipped responses listed one by one; further ones are only counted.
    package static let toldLimit = 1000

    /// The number of imported entries, and the bytes of their bodies.
    package private(set) var imported = 0
    package private(set) var bytes: Int64 = 0
    package private(set) var skippedCount = 0
    package private(set) var skipped: [Skipped] = []

    mutating func took(_ length: Int64) {
        imported += 1
        bytes = bytes.addedClamped(length)
    }

    mutating func passed(over record: Int, url: String, reason: String) {
        skippedCount += 1
        if skipped.count < Self.toldLimit { skipped.append(Skipped(record: record, url: url, reason: reason)) }
    }

    /// The report in the form of the admin API.
    package var json: JSONValue {
        [
            "imported": .number(JSONNumber(Int64(imported))), "bytes": .number(JSONNumber(bytes)),
            "skippedCount": .number(JSONNumber(Int64(skippedCount))),
            "skipped": .array(
                skipped.map {
                    ["record": .number(JSONNumber(Int64($0.record))), "url": .string($0.url), "reason": .string($0.reason)]
                }),
        ]
    }
}
