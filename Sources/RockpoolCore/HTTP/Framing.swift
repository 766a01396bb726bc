// How long the body of a message is, from Content-Length and Transfer-Encoding alone (RFC 9112 §6).
import HTTPTypes

/// How the end of a message body is found.
package enum Framing: Hashable, Sendable {
    /// There is no body.
    case none
    /// As many bytes as Content-Length says.
    case length(Int64)
    /// The chunked transfer coding, by itself.
    case chunked
}

extension Framing {
    /// Which of RFC 9112 §6.1 and §6.3 a head offends against.
    enum Fault: Error, Hashable, Sendable {
        case lengthAndCoding, repeatedCoding, malformedCoding, unknownCoding, codingBeforeHTTP11
        case repeatedLength, malformedLength, lengthTooLarge
    }

    /// What the fields declare; nil when they declare nothing. Stricter than the RFC: one field, one value, never both fields,
    /// because each leniency is a way for two recipients to disagree about where a message ends.
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

    /// Passes for `chunked`. A well-formed list that ends in it names a coding we do not implement (501), the rest is malformed (400).
    private static func checkCoding(_ value: String) throws(Fault) {
        let elements = value.split(separator: ",", omittingEmptySubsequences: false).map { $0.trimmingOWS().lowercased() }
        if elements == ["chunked"] { return }
        let isList = elements.allSatisfy { HTTPField.Name($0) != nil }
        throw isList && elements.last == "chunked" && !elements.dropLast().contains("chunked") ? .unknownCoding : .malformedCoding
    }

    /// 2⁵³, eight petabytes: nobody sends that, and sums of a few such lengths cannot overflow.
    private static let greatestLength: Int64 = 1 << 53

    /// `1*DIGIT` (RFC 9110 §8.6); leading zeros are digits too.
    private static func contentLength(_ value: String) throws(Fault) -> Int64 {
        let digits = Substring(value).trimmingOWS()
        guard digits.isDigits else { throw .malformedLength }
        guard let length = Int64(digits), length <= greatestLength else { throw .lengthTooLarge }
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

    /// The answer to a request with this fault.
    var asRequestRefusal: Refusal {
        switch self {
        case .unknownCoding: Refusal(status: 501, problem: "not-implemented", detail: description)
        case .lengthTooLarge: Refusal(status: 413, problem: "body-too-large", detail: description)
        default: .badRequest(description)
        }
    }
}
