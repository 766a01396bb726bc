// Responses of a GraphQL endpoint: errors arrive with status 200 (GraphQL over HTTP §6.4; docs/outbox.md#graphql).

/// What a response of a GraphQL endpoint says about its request.
package enum GraphQLResponse {
    /// The message of the first of the response's errors; nil for a response without errors, and for a body that is not one.
    package static func error(in body: [UInt8]) -> String? {
        guard body.holds("\"errors\""), let document = try? JSONValue.parse(body) else { return nil }
        for response in document.array ?? [document] {
            guard let errors = response["errors"]?.array, let first = errors.first else { continue }
            return first["message"]?.string ?? "errors"
        }
        return nil
    }

    /// The reply to a queued mutation: its fields are null, because there is no data yet, and its extensions name the operation.
    /// - Parameters:
    ///   - request: The body of the mutation.
    ///   - isOptimistic: True to answer with the data that the mutation's arguments show.
    package static func queued(_ operation: JSONValue, to request: [UInt8], isOptimistic: Bool = false) -> JSONValue {
        let request = GraphQLRequest(body: request)
        if isOptimistic, let data = request.flatMap(GraphQLOptimism.data) {
            return ["data": data, "extensions": ["rockpool": operation]]
        }
        let names = request?.document.map { selection(in: $0, operationName: request?.operationName) } ?? []
        return ["data": .object(JSONObject(names.map { ($0, .null) })), "extensions": ["rockpool": operation]]
    }

    /// The response names of the fields that the operation selects, without those of its fragments.
    static func selection(in document: String, operationName: String?) -> [String] {
        var names: [String] = []
        var (words, depth, isSelected) = ([String](), 0, false)
        var last: GraphQLTokens.Token?
        for token in GraphQLTokens(document) {
            switch token {
            case .open:
                if depth == 0 {
                    isSelected = words.first != "fragment" && (operationName == nil || words.dropFirst().first == operationName)
                }
                depth += 1
            case .close:
                depth = max(0, depth - 1)
                if depth == 0 {
                    words = []
                    if isSelected { return names }
                }
            case .word(let word) where depth == 0: words.append(word)
            case .word(let word) where depth == 1 && isSelected: if !isAfterMark(last) { names.append(word) }
            case .word, .mark: break
            }
            // `... on Type` names a type after the mark and the word.
            if token != .word("on") || !isAfterMark(last) { last = token }
        }
        return names
    }

    /// True after the colon of an alias, which is the name itself, and before the name of a directive or a fragment.
    private static func isAfterMark(_ token: GraphQLTokens.Token?) -> Bool { if case .mark? = token { true } else { false } }
}
