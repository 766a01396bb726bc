// The process that listens on a TCP port of this machine, as far as the caller may see it (proc(5)).
import Foundation

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
        let targets = Set(["/proc/net/tcp", "/proc/net/tcp6"].flatMap { inodes(in: $0, port: port) }.map { "socket:[\($0)]" })
        guard !targets.isEmpty else { return nil }
        let files = FileManager.default
        let processes = ((try? files.contentsOfDirectory(atPath: "/proc")) ?? []).compactMap { Int32($0) }
        let holder = processes.first { process in
            let handles = (try? files.contentsOfDirectory(atPath: "/proc/\(process)/fd")) ?? []
            return handles.contains { handle in
                (try? files.destinationOfSymbolicLink(atPath: "/proc/\(process)/fd/\(handle)")).map(targets.contains) ?? false
            }
        }
        guard let holder, let name = files.contents(atPath: "/proc/\(holder)/comm") else { return nil }
        return PortOwner(process: holder, program: String(decoding: name, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
    }

    /// The inodes of the sockets that listen on a port.
    private static func inodes(in table: String, port: Int) -> [Substring] {
        guard let text = FileManager.default.contents(atPath: table).map({ String(decoding: $0, as: UTF8.self) }) else { return [] }
        return text.split(separator: "\n").dropFirst().compactMap { line in
            let columns = line.split(separator: " ")
            guard columns.count > 9, columns[3] == "0A", let place = columns[1].split(separator: ":").last else { return nil }
            return Int(place, radix: 16) == port ? columns[9] : nil
        }
    }
}
