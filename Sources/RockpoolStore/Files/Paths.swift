// Operations on names in the file system.
import Glibc

/// Operations on paths and directories.
enum Paths {
    /// Creates a directory with mode 0700 unless it exists.
    static func makeDirectory(_ path: String) throws(FileError) {
        guard unsafe mkdir(path, 0o700) == 0 || errno == EEXIST else { throw FileError(call: "mkdir", path: path, code: errno) }
    }

    /// Creates a directory and all its missing parents.
    static func makeDirectories(_ path: String) throws(FileError) {
        if FileStatus.of(path)?.isDirectory == true { return }
        if let slash = path.lastIndex(of: "/"), slash != path.startIndex { try makeDirectories(String(path[..<slash])) }
        try makeDirectory(path)
    }

    static func move(_ path: String, to target: String) throws(FileError) {
        guard unsafe Glibc.rename(path, target) == 0 else { throw FileError(call: "rename", path: path, code: errno) }
    }

    /// Writes a whole file durably, in place of one that may be there. It is written to a temporary file, whose name begins with a dot, and
    /// renamed, so that a crash leaves either the old or the new file.
    static func replace(_ name: String, in directory: String, by bytes: [UInt8]) throws(FileError) {
        let temporary = "\(directory)/.\(name).new"
        remove(temporary)
        let file = try Descriptor.create(temporary)
        try file.write(all: bytes)
        try file.synchronize()
        try move(temporary, to: "\(directory)/\(name)")
        try synchronizeDirectory(directory)
    }

    /// - Returns: true if something was removed.
    @discardableResult
    static func remove(_ path: String) -> Bool { unsafe Glibc.unlink(path) == 0 }

    /// Makes the names in a directory survive a power failure (fsync of the directory).
    static func synchronizeDirectory(_ path: String) throws(FileError) {
        // `/.` also resolves a symbolic link: nothing inside a store is one, but the directory itself may be (systemd's DynamicUser).
        try Descriptor(path + "/.", O_RDONLY | O_DIRECTORY).synchronize()
    }

    /// Returns the names in a directory, unordered; none when the directory cannot be read.
    static func names(in path: String) -> [String] {
        guard let directory = unsafe opendir(path) else { return [] }
        defer { unsafe closedir(directory) }
        var names: [String] = []
        while let entry = unsafe readdir(directory) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe pointer.withMemoryRebound(to: CChar.self, capacity: Int(NAME_MAX) + 1) { unsafe String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }
}
