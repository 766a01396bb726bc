// Why some bytes are not taken for JSON (RFC 8259).

/// A refusal of the parser, with the byte it stopped at.
package struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong, in words.
    package enum Problem: String, Sendable {
        case tooLarge = "larger than allowed"
        case tooDeep = "nested deeper than allowed"
        case unexpectedEnd = "ends early"
        case unexpectedByte = "unexpected byte"
        case trailingBytes = "more bytes after the value"
        case malformedNumber = "not a number"
        case malformedEscape = "not an escape"
        /// An escaped half of a surrogate pair, which no Unicode string holds.
        case loneSurrogate = "half of a surrogate pair"
        case malformedUTF8 = "not UTF-8"
        case controlInString = "control character in a string"
        case duplicateName = "a name occurs twice in an object"
    }

    /// What is wrong.
    package var problem: Problem
    /// From the beginning of the text.
    package var offset: Int

    package var description: String { "\(problem.rawValue), at byte \(offset)" }

    package init(_ problem: Problem, offset: Int) {
        self.problem = problem
        self.offset = offset
    }
}
