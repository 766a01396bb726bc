// Parses a GraphQL request as far as needed to distinguish reads from writes (GraphQL specification §2.3; GraphQL over HTTP §5).

/// The kind of operation that a request's body selects.
package enum GraphQLOperation: String, Hashable, Sendable {
    case query, mutation, subscription
    /// The body refers to the operation by a hash, or selects none: its kind cannot be determined.
    case unknown

    /// The operation of a request with this body; nil if the body is not a GraphQL request. Of several operations in one body, the first
    /// that is not a query, else the first.
    package static func of(body: [UInt8]) -> GraphQLOperation? {
        guard let document = try? JSONValue.parse(body) else { return nil }
        if let requests = document.array {
            let operations = requests.compactMap { of($0) }
            return operations.first { $0 != .query } ?? operations.first
        }
        return of(document)
    }

    private static func of(_ request: JSONValue) -> GraphQLOperation? {
        guard let text = request["query"]?.string else {
            return request["extensions"]?["persistedQuery"] == nil ? nil : .unknown
        }
        let operations = Self.operations(in: text)
        if let name = request["operationName"]?.string, !name.isEmpty {
            return operations.first { $0.name == name }?.kind ?? .unknown
        }
        return operations.first { $0.kind != .query }?.kind ?? operations.first?.kind
    }

    /// The operations that a document defines, with their names. A selection set without a keyword is a query.
    private static func operations(in document: String) -> [(kind: GraphQLOperation, name: String?)] {
        var found: [(kind: GraphQLOperation, name: String?)] = []
        var words: [String] = []
        var depth = 0
        for token in GraphQLTokens(document) {
            switch token {
            case .open:
                if depth == 0, words.first != "fragment" {
                    if let kind = words.first.flatMap(GraphQLOperation.init), kind != .unknown {
                        found.append((kind, words.count > 1 ? words[1] : nil))
                    } else if words.isEmpty {
                        found.append((.query, nil))
                    }
                }
                depth += 1
            case .close:
                depth = max(0, depth - 1)
                if depth == 0 { words = [] }
            case .word(let word): if depth == 0 { words.append(word) }
            case .mark: break
            }
        }
        return found
    }
}
