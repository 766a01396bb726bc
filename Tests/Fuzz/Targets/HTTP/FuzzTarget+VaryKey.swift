// Variants: a request is answered only by the variant stored under its own variant key (RFC 9111 §4.1).
import HTTPTypes
import RockpoolCore

extension FuzzTarget {
    /// Lines: Vary, the fields of one request, an empty line, the fields of another.
    static func varyKey(_ input: FuzzInput) throws(BrokenProperty) {
        let answer = ResponseHead(status: 200, fields: HTTPFields([HTTPField(line: input.bytes(0)[...], as: .vary)]))
        let first = input.fields(1)
        let (one, other) = (request(first.fields), request(input.fields(first.next).fields))
        // As it is stored: fields that select count as named.
        let head = ImpliedVary.varying(answer, by: one.fields.selectingNames)
        guard let selecting = Vary.selectingFields(response: head, request: one),
            let others = Vary.selectingFields(response: head, request: other)
        else {
            return try hold(Vary.selectingFields(response: head, request: other) == nil, "a Vary that nobody can meet is met by nobody")
        }
        let again = Vary.selectingFields(response: head, request: request(selecting)) ?? [:]
        try hold(areSame(Vary.variantKey(again), Vary.variantKey(selecting)), "what selects is normalised: \(selecting) \(again)")
        let stored = StoredResponse(head: head, requestFields: selecting, requestTime: .distantPast, responseTime: .distantPast)
        try hold(Vary.matches(stored: stored, request: one), "a response answers its own request")
        let named = stored.validity.varyNames ?? []
        let isSame = areSame(Vary.variantKey(selecting), Vary.variantKey(others)) && other.fields.selectingNames.allSatisfy(named.contains)
        try hold(
            Vary.matches(stored: stored, request: other, isExact: true) == isSame, "a variant answers requests with its key alone")
        try hold(
            isSame || named.contains(.acceptEncoding) || !Vary.matches(stored: stored, request: other),
            "but for codings, no variant serves for another key")
    }

    private static func request(_ fields: HTTPFields) -> RequestHead {
        RequestHead(method: .get, origin: OriginAddress(scheme: .http, host: "a.test"), target: "/", fields: fields)
    }
}
