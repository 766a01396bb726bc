// Questions that well-known APIs are asked by POST (docs/outbox.md#never-queued).

/// A POST that asks, or that needs its answer as every program of its API expects it.
enum Question {
    /// - Parameters:
    ///   - path: the path as it was sent.
    ///   - last: its last segment in lower case.
    static func isOne(_ path: String, last: String) -> Bool {
        if segments.contains(last) || verbs.contains(where: { last.hasSuffix($0) }) { return true }
        return path.hasSuffix("/chat/completions") || path.hasSuffix("/v1/completions") || Array(path.utf8).holds("/-/npm/v1/security/")
    }

    /// Last segments: searches and batches of Elasticsearch and OpenSearch, CouchDB and OData; embeddings of language models.
    private static let segments: Set<String> = [
        "_search", "_msearch", "_count", "_mget", "_bulk", "_sql", "_query", "_find", "_explain", "_all_docs", "_bulk_get", "_bulk_docs",
        "_revs_diff", "_changes", "$batch", "$query", "embeddings",
    ]

    /// Ends of last segments: questions among the custom methods of Google's APIs.
    private static let verbs = [
        ":runquery", ":runaggregationquery", ":batchget", ":search", ":query", ":predict", ":generatecontent", ":streamgeneratecontent",
        ":counttokens", ":embedcontent",
    ]
}
