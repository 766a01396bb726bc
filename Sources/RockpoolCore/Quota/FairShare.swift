// How clients share a limit (docs/security-model.md#shares-of-clients).

/// Whom the process serves, as its limits tell clients apart.
package enum ClientID: Hashable, Sendable {
    /// A process of this machine.
    case process(Int32)
    /// The processes of a user of this machine whose number the system does not show.
    case user(UInt32)
    case address(IPAddress)
    /// A client without an address.
    case unknown
}

/// The rule of every limit that clients share: one client may hold up to three times what stays free. A single client gets three quarters
/// of the limit, of two each three sevenths, and a newcomer always finds room.
package enum FairShare {
    /// How much of what is free a client may hold.
    private static let weight = 3

    /// True if a client may take `amount` more.
    /// - Parameters:
    ///   - held: what the client has.
    ///   - used: what all clients have together.
    package static func admits(_ amount: Int, held: Int, used: Int, limit: Int) -> Bool {
        let free = limit - used - amount
        // One more than what stays free, so that a limit of one can be used.
        return free >= 0 && held + amount <= weight * (free + 1)
    }

    /// True if a client has more than its share, because others have taken of what was free.
    package static func isExceeded(held: Int, used: Int, limit: Int) -> Bool { held > weight * max(0, limit - used) }

    /// The most that one kind may take of a limit: three quarters, which clients share by the rule above.
    package static func ofKind(limit: Int) -> Int { (weight * (limit + 1)) / (weight + 1) }
}

/// A tunnel that may be closed for something else, because nothing passes through it.
package struct SilentTunnel: Sendable {
    package let client: ClientID
    /// For how long nothing has passed.
    package let silence: TimeSpan

    package init(client: ClientID, silence: TimeSpan) { (self.client, self.silence) = (client, silence) }

    /// A tunnel that was silent for less is in use.
    package static let patience = TimeSpan.seconds(1)

    /// Returns the index of the tunnel that gives way to a client: of its own where it has reached its share, else of the client that has the
    /// most tunnels, if that has more than this one. Of those, the one that has been silent longest.
    /// - Parameter isOwnShare: true if the client itself has no room, though others have.
    package static func toClose(among tunnels: [SilentTunnel], for client: ClientID, isOwnShare: Bool) -> Int? {
        let silent = tunnels.indices.filter { tunnels[$0].silence >= patience }
        var owner = client
        if !isOwnShare {
            var counts: [ClientID: Int] = [:]
            for tunnel in tunnels { counts[tunnel.client, default: 0] += 1 }
            let silentOwners = Set(silent.map { tunnels[$0].client })
            guard let most = silentOwners.max(by: { (counts[$0] ?? 0, $0 == client ? 1 : 0) < (counts[$1] ?? 0, $1 == client ? 1 : 0) })
            else { return nil }
            guard most == client || (counts[most] ?? 0) > (counts[client] ?? 0) else { return nil }
            owner = most
        }
        return silent.filter { tunnels[$0].client == owner }.max { tunnels[$0].silence < tunnels[$1].silence }
    }
}
