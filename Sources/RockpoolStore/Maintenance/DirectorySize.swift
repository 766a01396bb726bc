// The size of a directory as `du` counts it, measured in small steps.

enum DirectorySize {
    /// Returns the allocated bytes of a directory and everything under it; 0 when it does not exist. Each directory is one turn of a file
    /// lane.
    static func allocated(_ path: String, on lanes: FileLanes) async throws -> Int64 {
        var sum: Int64 = 0
        var waiting = [path]
        while let next = waiting.popLast() {
            let (bytes, below) = try await lanes.run(1) { level(next) }
            sum += bytes
            waiting += below
        }
        return sum
    }

    /// Returns the bytes of one directory with its files, and the directories in it.
    private static func level(_ path: String) -> (bytes: Int64, below: [String]) {
        var bytes = FileStatus.of(path)?.allocated ?? 0
        var below: [String] = []
        for name in Paths.names(in: path) {
            guard let status = FileStatus.of("\(path)/\(name)") else { continue }
            if status.isDirectory { below.append("\(path)/\(name)") } else { bytes += status.allocated }
        }
        return (bytes, below)
    }
}
