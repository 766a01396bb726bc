// The system's table of TCP sockets, as `/proc/net/tcp` and `/proc/net/tcp6` show it (proc(5)).

/// A TCP socket of this machine.
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
