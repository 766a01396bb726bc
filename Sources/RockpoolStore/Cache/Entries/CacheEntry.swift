// The result of a lookup: one stored variant, and where its body is (docs/architecture.md#vocabulary, "entry").
package import RockpoolCore

/// One stored response.
package struct CacheEntry: Sendable {
    /// The id of its row; never reused.
    package let id: Int64
    /// The key it was found by.
    package let key: CacheKey
    package var response: StoredResponse
    package var storedAt: Timestamp
    package var isPinned: Bool
    /// SHA-256 of the body, or the name that its seal makes of that.
    package let bodyHash: [UInt8]
    /// True if the body is a file of `bodies/`, false if it is in the row.
    package let bodyIsInFile: Bool
    /// The coding in which the body is stored.
    var bodyCoding = StoredCoding.plain
}
