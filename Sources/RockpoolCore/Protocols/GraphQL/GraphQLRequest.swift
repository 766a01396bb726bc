// A GraphQL request in the form in which it is keyed, whatever the spelling of its body (GraphQL over HTTP §5;
// docs/reference/configuration.md#routes, `kind: graphql`).

/// The parts of a request that select the response, and the kind of its operation.
package struct GraphQLRequest: Hashable, Sendable {
    /// The kind that the document shows; `unknown` if the request names its document by a hash only.
    package var kind: GraphQLOperation
    package var operationName: String?
    /// The document; nil if it is named by its hash.
    package var document: String?
    /// The SHA-256 of the document in hexadecimal, as the client states it (automatic persisted queries).
    package var hash: String?
    /// The variables, null if there are none.
    package var variables: JSONValue

    /// Reads a request's body. Nil if it is not one request: not JSON, a batch, or without a document and a hash.
    package init?(body: [UInt8]) {
        guard let request = try? JSONValue.parse(body), request.object != nil, let kind = GraphQLOperation.of(body: body) else {
            return nil
        }
        self.kind = kind
        operationName = request["operationName"]?.string
        document = request["query"]?.string
        hash = request["extensions"]?["persistedQuery"]?["sha256Hash"]?.string?.lowercased()
        variables = request["variables"] ?? .null
        guard document != nil || hash != nil else { return nil }
    }

    /// The text that stands for the request in a cache key: a request with a document and one with its hash have the same.
    /// - Parameter digest: Returns the SHA-256 of bytes in hexadecimal.
    package func keyText(digest: ([UInt8]) -> String) -> [UInt8] {
        let document = document.map { digest(Array($0.utf8)) } ?? hash ?? ""
        let parts = ["graphql", document, operationName ?? "", String(decoding: variables.inOrder.serialized(), as: UTF8.self)]
        return Array(parts.joined(separator: "\n").utf8)
    }

    /// The value of the variable that a route names by a JSON Pointer, as text; nil if it is absent or no scalar.
    package func variable(_ pointer: JSONPointer) -> String? {
        switch pointer.get(in: variables) {
        case .string(let text)?: text
        case .number(let number)?: number.literal
        default: nil
        }
    }
}

extension JSONValue {
    /// The same value with the members of every object in the order of their names.
    fileprivate var inOrder: JSONValue {
        switch self {
        case .array(let elements): .array(elements.map(\.inOrder))
        case .object(let members): .object(JSONObject(members.sorted { $0.name < $1.name }.map { ($0.name, $0.value.inOrder) }))
        default: self
        }
    }
}
