// One copy of each text that many operations share.

/// Gives equal texts one storage: the names of upstreams, collections and principals are the same in thousands of operations.
package struct SharedTexts: Sendable {
    private var texts: Set<String> = []

    package init() {}

    /// Returns the stored text that equals `text`.
    package mutating func shared(_ text: String) -> String { texts.insert(text).memberAfterInsert }

    /// Returns the stored text that equals `text`; nil for nil.
    package mutating func shared(_ text: String?) -> String? { text.map { shared($0) } }
}

extension OperationSummary {
    /// Gives the texts that it has in common with others the storage of `texts`.
    package mutating func share(_ texts: inout SharedTexts) {
        (upstream, collection, principal) = (texts.shared(upstream), texts.shared(collection), texts.shared(principal))
        client = texts.shared(client)
        route = texts.shared(route)
    }
}
