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
        package init?(address: String, userAgent: Span<UInt8>) {
            guard !address.isEmpty || !userAgent.isEmpty else { return nil }
            let place = address.hasPrefix("::ffff:") ? address.dropFirst(7) : address[...]
            var hash = FNV1a()
            hash.add((place == "::1" || place.hasPrefix("127.") ? "localhost" : place).utf8)
            hash.add(0xFF)
            for index in userAgent.indices { hash.add(userAgent[index]) }
            number = Int64(bitPattern: hash.value)
        }

        package init?(address: String, userAgent: String) { self.init(address: address, userAgent: userAgent.utf8Span.span) }
    }
}
