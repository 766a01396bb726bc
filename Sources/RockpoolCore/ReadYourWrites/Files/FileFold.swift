// The state of a file as its client must see it: that of the server, changed by the client's own writes (docs/outbox.md#files-and-collections).

/// Writes to the files of one upstream, folded in order of acceptance.
package struct FileFold: Sendable {
    package enum State: Hashable, Sendable {
        /// As the server has it, under this path: another one after a MOVE or a COPY, which `by` then is.
        case server(FilePath, by: FileWrite?)
        case content(FileWrite)
        case collection(FileWrite)
        case absent(FileWrite)
    }

    /// In order of acceptance.
    package let writes: [FileWrite]

    package init(_ writes: [FileWrite]) { self.writes = writes }

    /// Returns the state of the file, following it back through the writes.
    package func state(of path: FilePath) -> State {
        var path = path
        var cause: FileWrite?
        for write in writes.reversed() {
            switch write.effect {
            case .content where write.path == path: return .content(write)
            case .collection where write.path == path: return .collection(write)
            case .removal where write.path.contains(path): return .absent(write)
            case .move(let destination):
                if let origin = path.moved(from: destination, to: write.path) {
                    (path, cause) = (origin, cause ?? write)
                } else if write.path.contains(path) {
                    return .absent(write)
                }
            case .copy(let destination, let isDeep):
                if let origin = path.moved(from: destination, to: write.path), isDeep || path == destination {
                    (path, cause) = (origin, cause ?? write)
                }
            case .derivation where write.path == path: return .server(path, by: cause)
            case .content, .collection, .removal, .derivation: continue
            }
        }
        return .server(path, by: cause)
    }

    /// True if the path is within a collection that an open write makes: if the server shows nothing of it, it is not there.
    package func isWithinNew(_ path: FilePath) -> Bool {
        writes.contains { !$0.isDelivered && $0.effect == .collection && $0.path != path && $0.path.contains(path) }
    }

    /// The path that the writes leave without anything, at this one or above it: it was removed, or is a collection that is to be made, and
    /// nothing within it is this path. Nil if they do not show that the path lacks.
    package func gap(at path: FilePath) -> FilePath? {
        switch state(of: path) {
        case .absent: path
        case .server(path, nil):
            writes.last { !$0.isDelivered && $0.effect == .collection && $0.path != path && $0.path.contains(path) }?.path
        case .server, .content, .collection: nil
        }
    }

    /// The paths that the writes create, also by moving or copying what an earlier one of them has created.
    package var created: Set<FilePath> {
        var paths: Set<FilePath> = []
        for write in writes {
            switch write.effect {
            case .content, .collection, .derivation: paths.insert(write.path)
            case .removal: continue
            case .move(let destination), .copy(let destination, _):
                paths.formUnion(paths.compactMap { $0.moved(from: write.path, to: destination) })
                paths.insert(destination)
            }
        }
        return paths
    }
}
