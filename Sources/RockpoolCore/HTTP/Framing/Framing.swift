// The length of a message body, determined from Content-Length and Transfer-Encoding alone (RFC 9112 §6).
import HTTPTypes

/// The framing of a message body, which determines its end.
package enum Framing: Hashable, Sendable {
    /// There is no body.
    case none
    /// The number of bytes given by Content-Length.
    case length(Int64)
    /// The chunked transfer coding without any other coding.
    case chunked
}

extension Framing {
    /// The rule of RFC 9112 §6.1 or §6.3 that a head violates.
    enum Fault: Error, Hashable, Sendable {
        case lengthAndCoding, repeatedCoding, malformedCoding, unknownCoding, codingBeforeHTTP11
        case repeatedLength, malformedLength, lengthTooLarge
    }

    /// The declared framing; nil if the fields declare none. Stricter than the RFC: one field, one value, never both fields, because with
    /// leniency two recipients may disagree about where a message ends.
    static func declared(by fields: HTTPFields, allowsCoding: Bool) throws(Fault) -> Framing? {
        guard fields.contains(.contentLength) || fields.contains(.transferEncoding) else { return nil }
        let codings = fields[values: .transferEncoding]
        let lengths = fields[values: .contentLength]
        if let coding = codings.first {
            guard lengths.isEmpty else { throw .lengthAndCoding }
            guard allowsCoding else { throw .codingBeforeHTTP11 }
            guard codings.count == 1 else { throw .repeatedCoding }
            try checkCoding(coding)
            return .chunked
        }
        guard let length = lengths.first else { return nil }
        guard lengths.count == 1 else { throw .repeatedLength }
        return .length(try contentLength(length))
    }

    /// Accepts `chunked`. A well-formed list that ends in it names a coding that is not implemented (501); anything else is malformed
    /// (400).
    private static func checkCoding(_ value: String) throws(Fault) {
        let elements = value.split(separator: ",", omittingEmptySubsequences: false).map { $0.trimmingOWS().lowercased() }
        if elements == ["chunked"] { return }
        let isList = elements.allSatisfy { HTTPField.Name($0) != nil }
        throw isList && elements.last == "chunked" && !elements.dropLast().contains("chunked") ? .unknownCoding : .malformedCoding
    }

    /// `1*DIGIT` (RFC 9110 §8.6); leading zeros are allowed.
    private static func contentLength(_ value: String) throws(Fault) -> Int64 {
        let digits = Substring(value).trimmingOWS()
        guard digits.isDigits else { throw .malformedLength }
        guard let length = Int64(digits), length <= ByteCount.longestBody.bytes else { throw .lengthTooLarge }
        return length
    }
}

extension Framing.Fault {
    /// The fault in words.
    var description: String {
        switch self {
        case .lengthAndCoding: "Content-Length beside Transfer-Encoding"
        case .repeatedCoding: "more than one Transfer-Encoding"
        case .malformedCoding: "Transfer-Encoding is not chunked"
        case .unknownCoding: "a transfer coding other than chunked"
        case .codingBeforeHTTP11: "Transfer-Encoding in an HTTP/1.0 message"
        case .repeatedLength: "more than one Content-Length"
        case .malformedLength: "Content-Length is not a number"
        case .lengthTooLarge: "Content-Length is beyond 2^53"
        }
    }

    /// The response to a request with this fault.
    var asRequestRefusal: Refusal {
        switch self {
        case .unknownCoding: Refusal(status: 501, problem: "not-implemented", detail: description)
        case .lengthTooLarge: Refusal(status: 413, problem: "body-too-large", detail: description)
        default: .badRequest(description)
        }
    }
}
