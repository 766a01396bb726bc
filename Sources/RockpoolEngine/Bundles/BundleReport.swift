// The report of an import: the responses stored, and those skipped with the reason (docs/reference/admin-api.md#bundles `cache import`).
package import RockpoolCore

/// The outcome of an import.
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
