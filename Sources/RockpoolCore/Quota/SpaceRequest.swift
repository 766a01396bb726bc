// The space that one write takes (docs/storage.md#limits-and-shares).

/// The space requested or held by a writer, in allocated bytes.
package struct SpaceRequest: Hashable, Sendable {
    /// Bytes of files not yet written.
    package var files: Int64
    /// Bytes of rows. Each page is counted twice, for the log and for the database; free pages are reused before the database grows.
    package var rows: Int64

    package init(files: Int64 = 0, rows: Int64 = 0) {
        self.files = max(0, files)
        self.rows = max(0, rows)
    }

    package var bytes: Int64 { files.addedClamped(rows) }
}

extension SpaceRequest {
    package static func + (a: SpaceRequest, b: SpaceRequest) -> SpaceRequest {
        SpaceRequest(files: a.files.addedClamped(b.files), rows: a.rows.addedClamped(b.rows))
    }
    package static func - (a: SpaceRequest, b: SpaceRequest) -> SpaceRequest {
        SpaceRequest(files: a.files - b.files, rows: a.rows - b.rows)
    }
}
