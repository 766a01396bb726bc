// A size as in the configuration: `500 MB`, `512 KiB`. MB is 10⁶ bytes, MiB 2²⁰ (docs/reference/configuration.md#values).

/// A number of bytes.
package struct ByteCount: Hashable, Comparable, Sendable, Codable {
    package var bytes: Int64

    package init(_ bytes: Int64) { self.bytes = bytes }

    package static let zero = ByteCount(0)
    /// 2⁵³ bytes, eight petabytes: larger than any real body, and sums of a few such lengths cannot overflow.
    package static let longestBody = ByteCount(1 << 53)

    /// `n` times 2¹⁰ bytes.
    package static func kib(_ n: Int64) -> ByteCount { ByteCount(n.multipliedClamped(by: 1024)) }
    /// `n` times 2²⁰ bytes.
    package static func mib(_ n: Int64) -> ByteCount { ByteCount(n.multipliedClamped(by: 1_048_576)) }
    /// `n` times 10⁶ bytes.
    package static func mb(_ n: Int64) -> ByteCount { ByteCount(n.multipliedClamped(by: 1_000_000)) }

    package static func < (a: Self, b: Self) -> Bool { a.bytes < b.bytes }
    package static func + (a: Self, b: Self) -> Self { ByteCount(a.bytes.addedClamped(b.bytes)) }
    package static func - (a: Self, b: Self) -> Self { ByteCount(a.bytes.addedClamped(-b.bytes)) }
    package static func += (a: inout Self, b: Self) { a = a + b }
    package static func -= (a: inout Self, b: Self) { a = a - b }
}

/// Sizes in bytes where an interface takes an integer: `.kib(64)`, `.mib(4)`.
extension BinaryInteger {
    /// `n` times 2¹⁰, as a number of bytes.
    @inlinable
    package static func kib(_ n: Self) -> Self { n * 1024 }

    /// `n` times 2²⁰, as a number of bytes. Traps if the type cannot represent it: for literals, not for numbers from outside.
    @inlinable
    package static func mib(_ n: Self) -> Self { n * 1_048_576 }
}
