// The processes of this machine that hold TCP sockets, as far as the caller may see them (proc(5)).
import Foundation
package import RockpoolCore
import Synchronization

/// A process that holds a port.
package struct PortOwner: Hashable, Sendable, CustomStringConvertible {
    package let process: Int32
    /// The name of the program, as the system shows it.
    package let program: String

    package var description: String { "\(program) (process \(process))" }

    /// The words for an address that is in use: by which process, and what to do.
    package static func words(forPort port: Int) -> String {
        let owner = of(port: port).map { " by \($0)" } ?? ""
        return "the port is in use\(owner); stop it, or set another address"
    }

    /// Returns nil if no process listens on the port, or if it belongs to another user.
    package static func of(port: Int) -> PortOwner? {
        let inodes = SocketOwners.sockets().filter { $0.isListening && $0.port == port }.map(\.inode)
        guard let holder = SocketOwners.processes(holding: Set(inodes)).values.first,
            let name = FileManager.default.contents(atPath: "/proc/\(holder)/comm")
        else { return nil }
        return PortOwner(process: holder, program: String(decoding: name, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
    }
}

/// Sockets and processes, as the system lists them. Each call reads many files.
package enum SocketOwners {
    /// Processes that have held sockets before are asked first.
    private static let lately = Mutex<[Int32]>([])
    private static let latelyLimit = 64

    /// The TCP sockets of this machine.
    /// - Parameter wanted: those that are looked for; nil for all.
    static func sockets(_ wanted: Set<SystemSocket.Ends>? = nil) -> [SystemSocket] {
        ["/proc/net/tcp", "/proc/net/tcp6"].flatMap { SystemSocket.all(in: content(of: $0), of: wanted) }
    }

    /// Reads to the end: the system gives out such a file in pieces, of which `FileManager` takes only the first.
    private static func content(of path: String) -> [UInt8] {
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return [] }
        defer { close(file) }
        var content: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: .kib(64))
        while true {
            let count = unsafe read(file, &piece, piece.count)
            if count <= 0 { return content }
            content += piece[..<count]
        }
    }

    /// The processes that hold sockets, by the inodes of the sockets. Those of other users are left out.
    static func processes(holding inodes: Set<UInt64>) -> [UInt64: Int32] {
        var found: [UInt64: Int32] = [:]
        if inodes.isEmpty { return found }
        let known = lately.withLock(\.self)
        find(inodes, in: known, &found)
        if found.count < inodes.count { find(inodes, in: names(in: "/proc").compactMap { Int32($0) }, &found) }
        let all = Set(found.values).union(known)
        lately.withLock { $0 = Array(all.prefix(latelyLimit)) }
        return found
    }

    private static func find(_ inodes: Set<UInt64>, in processes: [Int32], _ found: inout [UInt64: Int32]) {
        for process in processes where found.count < inodes.count {
            let directory = "/proc/\(process)/fd"
            for name in names(in: directory) {
                guard let inode = socket(at: "\(directory)/\(name)"), inodes.contains(inode) else { continue }
                // Its first holder: a child that has inherited it comes later.
                if found[inode] == nil { found[inode] = process }
            }
        }
    }

    /// The clients behind connections of this machine: their processes; the users of those that cannot be seen.
    /// - Parameter connections: the ends of each connection as its client has them, as either table may show them.
    package static func clients(of connections: [[SystemSocket.Ends]]) -> [ClientID?] {
        var sockets: [SystemSocket.Ends: SystemSocket] = [:]
        for socket in Self.sockets(Set(connections.joined())) { sockets[socket.ends] = socket }
        let holders = processes(holding: Set(sockets.values.map(\.inode)))
        return connections.map { ends in
            guard let socket = ends.lazy.compactMap({ sockets[$0] }).first else { return nil }
            return holders[socket.inode].map { .process($0) } ?? .user(socket.user)
        }
    }

    private static func names(in directory: String) -> [String] {
        guard let stream = unsafe opendir(directory), let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { return [] }
        defer { unsafe closedir(stream) }
        var names: [String] = []
        while let entry = unsafe readdir(stream) {
            // Read in place: the entry may be shorter than its type.
            let name = unsafe (UnsafeRawPointer(entry) + offset).assumingMemoryBound(to: CChar.self)
            let text = unsafe String(cString: name)
            if text.first?.isNumber == true { names.append(text) }
        }
        return names
    }

    /// The inode of the socket that a descriptor is; nil for another file.
    private static func socket(at path: String) -> UInt64? {
        var target = [UInt8](repeating: 0, count: 64)
        let count = unsafe target.withUnsafeMutableBytes { buffer in
            unsafe buffer.baseAddress.map { unsafe readlink(path, $0, buffer.count) } ?? 0
        }
        let (start, text) = ("socket:[", String(decoding: target.prefix(max(0, count)), as: UTF8.self))
        guard text.hasPrefix(start), text.hasSuffix("]") else { return nil }
        return UInt64(text.dropFirst(start.count).dropLast())
    }
}
