// Who has something in front of it: a program of one identity (docs/outbox.md#sight *viewer*).

/// One program of one identity. A site's devices often share one credential, and clients without a credential share none.
package struct Viewer: Hashable, Sendable {
    /// The partition of the identity; empty for clients without a credential.
    package var partition: String
    /// Tells the programs of the identity apart; nil where nothing does: then it counts as any of them.
    package var program: Program?

    package init(partition: String?, program: Program? = nil) { (self.partition, self.program) = (partition ?? "", program) }

    /// A program, told by its address and its `User-Agent`: the number is the same after a restart.
    package struct Program: Hashable, Sendable {
        package let number: Int64

        package init(number: Int64) { self.number = number }

        /// Nil where neither is known.
        /// - Parameters:
        ///   - address: without the port, which each connection has anew. All of this machine's own addresses are one.
        ///   - userAgent: the bytes of the field's value.
        package init?(address: String, userAgent: some Sequence<UInt8>) {
            // FNV-1a.
            var hash: UInt64 = 0xCBF2_9CE4_8422_2325
            var isKnown = false
            func take(_ byte: UInt8) {
                isKnown = true
                hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
            }
            let place = address.hasPrefix("::ffff:") ? address.dropFirst(7) : address[...]
            for byte in (place == "::1" || place.hasPrefix("127.") ? "localhost" : place).utf8 { take(byte) }
            hash = (hash ^ 0xFF) &* 0x100_0000_01B3
            for byte in userAgent { take(byte) }
            guard isKnown else { return nil }
            number = Int64(bitPattern: hash)
        }
    }
}
