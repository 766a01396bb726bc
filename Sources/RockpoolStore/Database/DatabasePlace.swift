// Whether the file of a database is still where it was opened: what is committed into a file without a name is lost with the process.

/// The place of an open file.
struct DatabasePlace: Sendable {
    let path: String
    private let identity: FileIdentity?

    /// - Parameter path: of a file that has just been opened.
    init(path: String) { (self.path, identity) = (path, FileStatus.of(path)?.identity) }

    /// Returns the error of a file that was removed or replaced since; nil if it is there.
    func confirm() -> DatabaseMoved? {
        guard let identity, FileStatus.of(path)?.identity != identity else { return nil }
        return DatabaseMoved(path: path)
    }
}

/// The file that is open is not the file of this name any more.
struct DatabaseMoved: Error, CustomStringConvertible {
    let path: String

    var description: String {
        "\(path) was removed or replaced while it is open: put the directory back, or restart Rockpool; nothing is accepted until then"
    }
}
