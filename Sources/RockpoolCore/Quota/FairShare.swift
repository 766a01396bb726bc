// How clients share the limits of the process (docs/security-model.md#shares-of-clients).
import DequeModule

/// Whom the process serves, as its limits tell clients apart.
package enum ClientID: Hashable, Sendable {
    /// A process of this machine.
    case process(Int32)
    /// All processes of one user of this machine, where the system does not show the process of a connection.
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

    /// True if a client holds more than its share, because the free part has shrunk since it took its places.
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

/// A number of places, and a queue for them. The client with the fewest places is next; of equals, the one that has waited longest.
package struct FairQueue<Client: Hashable, Work> {
    private struct Line {
        var running = 0
        var waiting = Deque<(number: UInt64, work: Work)>()
    }

    private let limit: Int
    private var lines: [Client: Line] = [:]
    private var arrivals: UInt64 = 0
    /// Places in use.
    package private(set) var running = 0

    /// - Parameter limit: the number of places, at least 1.
    package init(limit: Int) { self.limit = max(1, limit) }

    package var isEmpty: Bool { lines.isEmpty }

    /// The work that waits.
    package var waiting: Int { lines.values.reduce(0) { $0 + $1.waiting.count } }

    /// Takes a place for work of `client`, or lets it wait.
    /// - Returns: true if it begins now.
    package mutating func enter(_ work: Work, of client: Client) -> Bool {
        guard lines[client]?.waiting.isEmpty ?? true, mayBegin(client) else {
            arrivals += 1
            lines[client, default: Line()].waiting.append((arrivals, work))
            return false
        }
        lines[client, default: Line()].running += 1
        running += 1
        return true
    }

    /// Gives back the place of work of `client` that has ended.
    /// - Returns: the work that begins now, and whose it is.
    package mutating func leave(_ client: Client) -> [(client: Client, work: Work)] {
        lines[client]?.running -= 1
        running -= 1
        drop(client)
        var begun: [(client: Client, work: Work)] = []
        while let next = next(), let work = lines[next]?.waiting.popFirst()?.work {
            lines[next]?.running += 1
            running += 1
            begun.append((next, work))
        }
        return begun
    }

    /// Removes work of `client` that waits.
    /// - Returns: false if it does not wait.
    package mutating func withdraw(from client: Client, where isIt: (Work) -> Bool) -> Bool {
        guard let place = lines[client]?.waiting.firstIndex(where: { isIt($0.work) }) else { return false }
        lines[client]?.waiting.remove(at: place)
        drop(client)
        return true
    }

    /// Removes the work that waits and is meant.
    package mutating func withdrawAll(where isMeant: (Work) -> Bool = { _ in true }) -> [(client: Client, work: Work)] {
        var withdrawn: [(client: Client, work: Work)] = []
        for client in Array(lines.keys) {
            let meant = lines[client]?.waiting.filter { isMeant($0.work) } ?? []
            withdrawn += meant.map { (client, $0.work) }
            lines[client]?.waiting.removeAll { isMeant($0.work) }
            drop(client)
        }
        return withdrawn
    }

    private mutating func drop(_ client: Client) {
        if let line = lines[client], line.running == 0, line.waiting.isEmpty { lines[client] = nil }
    }

    private func mayBegin(_ client: Client) -> Bool {
        FairShare.admits(1, held: lines[client]?.running ?? 0, used: running, limit: limit)
    }

    private func next() -> Client? {
        guard running < limit else { return nil }
        return lines.filter { !$0.value.waiting.isEmpty && mayBegin($0.key) }
            .min { ($0.value.running, $0.value.waiting.first?.number ?? 0) < ($1.value.running, $1.value.waiting.first?.number ?? 0) }?.key
    }
}

/// Work that needs a place at its host and one of all places. No host takes more than three quarters of all.
package struct FairPlaces<Host: Hashable, Client: Hashable, Work> {
    private let hostLimit: Int
    private var hosts: [Host: FairQueue<Client, Work>] = [:]
    /// Who has a place at its host.
    private var all: FairQueue<Client, (host: Host, work: Work)>

    /// - Parameters:
    ///   - limit: the number of all places, at least 1.
    ///   - hostLimit: the most at one host.
    package init(limit: Int, hostLimit: Int) {
        self.hostLimit = min(hostLimit, max(1, limit * 3 / 4))
        all = FairQueue(limit: limit)
    }

    package var isEmpty: Bool { hosts.isEmpty && all.isEmpty }

    /// The hosts that work waits for, or has a place at.
    package var used: [Host] { Array(hosts.keys) }

    /// Takes a place for work of `client` at `host`, or lets it wait.
    /// - Returns: true if it begins now.
    package mutating func enter(_ work: Work, at host: Host, of client: Client) -> Bool {
        guard hosts[host, default: FairQueue(limit: hostLimit)].enter(work, of: client) else { return false }
        return all.enter((host, work), of: client)
    }

    /// Gives back the place of work of `client` at `host` that has ended.
    /// - Returns: the work that begins now.
    package mutating func leave(_ host: Host, of client: Client) -> [Work] {
        let begun = all.leave(client).map(\.work.work)
        return begun + leaveHost(host, of: client)
    }

    /// Removes work of `client` that waits.
    /// - Returns: the work that begins in its stead; nil if it does not wait.
    package mutating func withdraw(from host: Host, of client: Client, where isIt: (Work) -> Bool) -> [Work]? {
        if hosts[host]?.withdraw(from: client, where: isIt) == true {
            drop(host)
            return []
        }
        guard all.withdraw(from: client, where: { $0.host == host && isIt($0.work) }) else { return nil }
        return leaveHost(host, of: client)
    }

    /// Removes all work that waits for `host`.
    package mutating func withdrawAll(from host: Host) -> [Work] {
        var withdrawn = hosts[host]?.withdrawAll().map(\.work) ?? []
        for (client, waiting) in all.withdrawAll(where: { $0.host == host }) {
            withdrawn.append(waiting.work)
            _ = hosts[host]?.leave(client)
        }
        drop(host)
        return withdrawn
    }

    private mutating func leaveHost(_ host: Host, of client: Client) -> [Work] {
        let next = hosts[host]?.leave(client) ?? []
        drop(host)
        return next.filter { all.enter((host, $0.work), of: $0.client) }.map(\.work)
    }

    private mutating func drop(_ host: Host) {
        if hosts[host]?.isEmpty == true { hosts[host] = nil }
    }
}

/// Shares of the limit on open descriptors, for any limit (getrlimit(2), RLIMIT_NOFILE).
///
/// Every share but the reserve is bounded: the process's own descriptors, the listeners' connections, and for each connection to an
/// upstream an additional file. Where limits are small, the reserve has space for a file, or the far side of a tunnel, for each client.
package struct DescriptorBudget: Hashable, Sendable {
    /// Descriptors the process may have open at once.
    package let limit: Int

    /// - Parameter limit: the system's limit; a value beyond 2^24 is treated as 2^24.
    package init(limit: Int) { self.limit = min(max(0, limit), Self.largestCount) }
    private static let largestCount = 1 << 24

    /// The budget of commands and tests, which serve no clients.
    package static let unlimited = DescriptorBudget(limit: .max)
    /// The minimum with which a server can work.
    package static let least = 96

    /// The maximum number of event loops, each of which holds three descriptors.
    package var eventLoops: Int { max(1, limit / 64) }

    /// Databases with all their readers, logs, locks, listeners, timers and signals: 53 on two loops, of which 6 are the loops'.
    private var own: Int { 56 + 3 * eventLoops }

    private var spare: Int { max(0, limit - own) }

    /// Unassigned descriptors: for short-lived files and name lookups, and for connections that are about to close.
    package var reserve: Int { spare / 4 }

    /// The number of open descriptors below which a listener accepts.
    package var acceptsBelow: Int { limit - reserve }

    /// The limit of connections for each of the two listeners of the admin API.
    package var adminConnections: Int { min(64, max(2, spare / 16)) }

    /// The limit of connections to upstreams, idle ones included. A response on a connection may need a file of its own.
    package var upstreamConnections: Int { min(1024, max(4, spare / 8)) }

    /// The limit of client connections to the proxy, over all listeners.
    package var clientConnections: Int { max(1, spare - reserve - 2 * (adminConnections + upstreamConnections)) }
}

/// A TCP socket of this machine (proc(5)).
package struct SystemSocket: Hashable, Sendable {
    /// The two ends of a connection in the table's spelling.
    package struct Ends: Hashable, Sendable {
        package let local: String
        package let remote: String

        init(local: String, remote: String) { (self.local, self.remote) = (local, remote) }

        /// The ends of a client's socket, as one or the other table may show them.
        package static func ofClient(
            _ client: IPAddress, port: Int, at server: IPAddress, port serverPort: Int
        ) -> [Ends] {
            let (client, server) = (client.mapped ?? client, server.mapped ?? server)
            var all = [Ends(local: spelling(of: client.octets, port), remote: spelling(of: server.octets, serverPort))]
            if client.family == .v4, server.family == .v4 {
                let prefix = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]
                all.append(
                    Ends(local: spelling(of: prefix + client.octets, port), remote: spelling(of: prefix + server.octets, serverPort)))
            }
            return all
        }

        /// Groups of four bytes, the least significant first, as the systems that Rockpool runs on have them.
        private static func spelling(of octets: [UInt8], _ port: Int) -> String {
            let groups = stride(from: 0, to: octets.count, by: 4).flatMap { octets[$0..<$0 + 4].reversed() }
            return groups.map { hex(Int($0), digits: 2) }.joined() + ":" + hex(port, digits: 4)
        }

        private static func hex(_ number: Int, digits: Int) -> String {
            let text = String(number, radix: 16, uppercase: true)
            return String(repeating: "0", count: max(0, digits - text.count)) + text
        }
    }

    package let ends: Ends
    package let isListening: Bool
    /// Whose it is.
    package let user: UInt32
    /// What `/proc/PID/fd` names it by.
    package let inode: UInt64

    /// The port of this end.
    package var port: Int? { ends.local.split(separator: ":").last.flatMap { Int($0, radix: 16) } }

    /// Reads a table; lines that are none of it are left out.
    /// - Parameter wanted: the sockets that are looked for; nil for all.
    package static func all(in table: [UInt8], of wanted: Set<Ends>? = nil) -> [SystemSocket] {
        table.split(separator: UInt8(ascii: "\n")).dropFirst().compactMap { line in
            var rest = line[...]
            guard next(&rest) != nil, let local = next(&rest), let remote = next(&rest) else { return nil }
            let ends = Ends(local: String(decoding: local, as: UTF8.self), remote: String(decoding: remote, as: UTF8.self))
            if let wanted, !wanted.contains(ends) { return nil }
            let columns = rest.split(separator: UInt8(ascii: " "), maxSplits: 7)
            guard columns.count > 6, let user = UInt32(String(decoding: columns[4], as: UTF8.self)),
                let inode = UInt64(String(decoding: columns[6], as: UTF8.self))
            else { return nil }
            return SystemSocket(ends: ends, isListening: columns[0].elementsEqual("0A".utf8), user: user, inode: inode)
        }
    }

    /// Takes the next column of a line.
    private static func next(_ line: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let start = line.firstIndex(where: { $0 != UInt8(ascii: " ") }) else { return nil }
        let end = line[start...].firstIndex(of: UInt8(ascii: " ")) ?? line.endIndex
        defer { line = line[end...] }
        return line[start..<end]
    }
}

extension IPAddress {
    /// The IPv4 address of `::ffff:1.2.3.4`; nil for any other.
    fileprivate var mapped: IPAddress? { family == .v6 && bits >> 32 == 0xFFFF ? IPAddress(family: .v4, bits: bits & 0xFFFF_FFFF) : nil }
}
