// The condition under which an answer with a status of 2xx means success (docs/reference/configuration.md#success).

/// What the answer to a write must show so that the write counts as applied. Statuses outside 200–299 keep their meaning.
package struct SuccessRule: Hashable, Sendable {
    /// The statuses of success; empty for all from 200 to 299.
    package var status: [Int]
    /// A JSON Pointer into the answer's body; nil if the body does not matter.
    package var pointer: String?
    /// True if the member must be absent, `null` or an empty list, false if it must be there; nil compares it with `equals`.
    package var absent: Bool?
    /// The value that the member must have.
    package var equals: JSONValue?

    /// Creates a rule; without arguments every answer of 2xx is a success.
    package init(status: [Int] = [], pointer: String? = nil, absent: Bool? = nil, equals: JSONValue? = nil) {
        self.status = status
        self.pointer = pointer
        self.absent = absent
        self.equals = equals
    }

    /// True if the rule depends on the answer's body.
    package var needsBody: Bool { pointer != nil }
}
