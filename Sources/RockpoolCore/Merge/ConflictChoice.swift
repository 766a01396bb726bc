// What a person chooses of a conflict: read strictly, so that nothing misspelt decides (contract §4 `resolve`).

/// Which side is to stand.
package struct ConflictChoice: Hashable, Sendable {
    package var resolution: Conflict.Resolution
    /// The whole new representation; only with `.merged`.
    package var merged: JSONValue?

    /// Reads the document of a `POST …/resolve`.
    /// - Throws: a 422 that names the member.
    package init(_ document: JSONObject) throws(Refusal) {
        if let name = document.names.first(where: { !["resolution", "merged"].contains($0) }) {
            throw .unprocessable("unknown member \(name.prefix(40)); there are resolution and merged")
        }
        guard let resolution = document["resolution"]?.string.flatMap(Conflict.Resolution.init) else {
            throw .unprocessable("resolution is \(Conflict.Resolution.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        let merged = document["merged"].flatMap { $0.isNull ? nil : $0 }
        if merged != nil, resolution != .merged {
            throw .unprocessable("merged goes with the resolution merged, not \(resolution.rawValue)")
        }
        self.resolution = resolution
        self.merged = merged
    }
}
