// A person's choice for a conflict, parsed strictly so that a misspelt member decides nothing (docs/reference/admin-api.md#conflicts
// `resolve`).

/// The chosen resolution.
package struct ConflictChoice: Hashable, Sendable {
    package var resolution: Conflict.Resolution
    /// The whole new representation; only with `.merged`.
    package var merged: JSONValue?

    /// Parses the document of a `POST …/resolve`.
    /// - Throws: a 422 that names the invalid member.
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
