// Sizes in bytes where an interface takes an integer: `.kib(64)`, `.mib(4)`, the notation of `ByteCount`.

extension BinaryInteger {
    /// `n` times 2¹⁰, as a number of bytes.
    @inlinable
    package static func kib(_ n: Self) -> Self { n * 1024 }

    /// `n` times 2²⁰, as a number of bytes. Traps if the type cannot represent it: for literals, not for numbers from outside.
    @inlinable
    package static func mib(_ n: Self) -> Self { n * 1_048_576 }
}
