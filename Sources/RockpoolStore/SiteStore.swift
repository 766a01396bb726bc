// What a collector keeps of sites: a secret and the last report of each, one file each (docs/fleet.md#sites).
package import RockpoolCore
import Synchronization

/// The sites of a collector. A site is known by its file in `secrets`; a file that is removed ends it.
package final class SiteStore: Sendable {
    /// Sites at most.
    package static let siteLimit = 10_000

    /// Thrown for a site that cannot be added.
    package struct CannotAdd: Error, CustomStringConvertible {
        package let description: String
    }

    private let directory: String
    private let lock: StoreLock?
    private let records: Mutex<[String: SiteRecord]>

    /// Opens the directory for the collector, which reads the records once.
    /// - Throws: `FileError`, `DataStoreError.locked` when another process uses the directory.
    package static func open(_ directory: String) throws -> SiteStore {
        try makeDirectories(in: directory)
        let lock = try StoreLock.acquire(directory)
        var records: [String: SiteRecord] = [:]
        for name in Paths.names(in: directory + "/sites") where name.hasSuffix(".json") {
            guard let bytes = try? FileBytes.read("\(directory)/sites/\(name)"), let document = try? JSONValue.parse(bytes),
                let record = SiteRecord(document), name == record.site + ".json"
            else { continue }
            records[record.site] = record
        }
        return SiteStore(directory: directory, lock: lock, records: records)
    }

    private init(directory: String, lock: StoreLock?, records: [String: SiteRecord]) {
        (self.directory, self.lock) = (directory, lock)
        self.records = Mutex(records)
    }

    private static func makeDirectories(in directory: String) throws {
        try Paths.makeDirectories(directory)
        for name in ["sites", "secrets"] { try Paths.makeDirectory("\(directory)/\(name)") }
    }

    /// The token of callers through the TCP port.
    package func token() throws -> String { try Secrets.secret("admin-token", in: directory) }

    /// The names of the sites, in order.
    package func names() -> [String] { Array(Self.names(in: directory).prefix(Self.siteLimit)) }

    private static func names(in directory: String) -> [String] {
        Paths.names(in: directory + "/secrets").filter(SiteName.isValid).sorted()
    }

    /// The secrets of a site; nil for one that is not known, or whose file cannot be used.
    package func signature(of site: String) -> WebhookSignature? {
        guard SiteName.isValid(site) else { return nil }
        return try? WebhookSignature(secretFile: "\(directory)/secrets/\(site)")
    }

    package func record(of site: String) -> SiteRecord? { records.withLock { $0[site] } }

    /// Keeps a report, unless a newer one is known. A crash leaves one of the two.
    /// - Returns: false if a newer one is known.
    /// - Throws: `FileError`; the old one is kept then.
    package func keep(_ record: SiteRecord) throws -> Bool {
        try records.withLock { records in
            guard records[record.site]?.yields(toSentAt: record.sentAt) ?? true else { return false }
            try Paths.replace("\(record.site).json", in: directory + "/sites", by: record.document.serialized())
            records[record.site] = record
            return true
        }
    }

    /// Adds a site.
    /// - Returns: its new secret.
    /// - Throws: `CannotAdd`, `FileError`.
    package static func add(_ site: String, in directory: String) throws -> String {
        guard SiteName.isValid(site) else {
            throw CannotAdd(description: "\"\(site)\" is no name of letters, digits, \"-\", \"_\" and \".\", which is not the first")
        }
        try makeDirectories(in: directory)
        let known = names(in: directory)
        guard !known.contains(site) else { throw CannotAdd(description: "\(site) is known; remove \(directory)/secrets/\(site) to end it") }
        guard known.count < siteLimit else { throw CannotAdd(description: "\(siteLimit) sites are known, the most there can be") }
        var random = SystemRandomNumberGenerator()
        let secret = "whsec_" + Base64.encode((0..<32).map { _ in UInt8.random(in: .min ... .max, using: &random) })
        // A site's name does not begin with a dot, as that of the temporary file does.
        try Paths.replace(site, in: directory + "/secrets", by: Array("\(secret)\n".utf8))
        return secret
    }
}
