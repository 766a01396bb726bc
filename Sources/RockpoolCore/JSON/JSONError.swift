// Errors of the JSON parser (RFC 8259).

/// A parse error with its byte offset.
package struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of error, in words.
    package enum Problem: String, Sendable {
        case tooLarge = "larger than allowed"
        case tooDeep = "nested deeper than allowed"
        case unexpectedEnd = "ends early"
        case unexpectedByte = "unexpected byte"
        case trailingBytes = "more bytes after the value"
        case malformedNumber = "not a number"
        case malformedEscape = "not an escape"
        /// An escaped half of a surrogate pair, which no Unicode string contains.
        case loneSurrogate = "half of a surrogate pair"
        case malformedUTF8 = "not UTF-8"
        case controlInString = "control character in a string"
        case duplicateName = "a name occurs twice in an object"
    }

    /// The kind of error.
    package var problem: Problem
    /// Offset from the beginning of the text.
    package var offset: Int

    package var description: String { "\(problem.rawValue), at byte \(offset)" }

    package init(_ problem: Problem, offset: Int) {
        self.problem = problem
        self.offset = offset
    }
}
