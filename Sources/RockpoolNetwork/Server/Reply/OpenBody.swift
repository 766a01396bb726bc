// One shared descriptor for all readers of a stored body (pread(2)).
import Glibc
import NIOCore
import Synchronization

/// A reader's reference to an open file. The last reader closes it.
final class OpenBody: Sendable {
    /// Identifies the file itself, because the path may later lead to another one.
    private struct Identity: Hashable {
        let device: UInt64
        let inode: UInt64
    }

    private struct Place {
        let descriptor: CInt
        var readers = 0
    }

    private static let places = Mutex<[Identity: Place]>([:])

    /// For `pread` only: the file position is shared and unused.
    let descriptor: CInt
    private let identity: Identity

    /// Opens the file at `path`, or shares the descriptor of its other readers. May block.
    /// - Throws: `IOError`.
    init(_ path: String) throws {
        let own = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard own >= 0 else { throw IOError(errnoCode: errno, reason: "open") }
        var status = stat()
        guard unsafe fstat(own, &status) == 0 else {
            let code = errno
            close(own)
            throw IOError(errnoCode: code, reason: "fstat")
        }
        let file = Identity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
        let shared = OpenBody.places.withLock { places in
            var place = places[file] ?? Place(descriptor: own)
            place.readers += 1
            places[file] = place
            return place.descriptor
        }
        if shared != own { close(own) }
        descriptor = shared
        identity = file
    }

    deinit {
        let isLast = OpenBody.places.withLock { places in
            guard var place = places[identity], place.readers > 1 else {
                places[identity] = nil
                return true
            }
            place.readers -= 1
            places[identity] = place
            return false
        }
        if isLast { close(descriptor) }
    }
}
