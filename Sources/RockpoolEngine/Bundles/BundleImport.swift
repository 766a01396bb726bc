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
