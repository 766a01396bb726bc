// What `du` says of a directory, counted without holding anything up.

enum DirectorySize {
    /// Allocated bytes of everything under a directory and of itself; 0 when there is none. Each directory is a turn of a file lane.
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

    /// One directory with its files, and the directories in it.
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
