// Response heads put together from the raw lines libcurl hands over, checked and bounded (RFC 9112 §2.2, §4, §5).
import HTTPTypes

/// Reads the lines of one upstream answer: any interim heads, then the final one.
package struct ResponseHeadLines: Sendable {
    /// How much an upstream's head may hold; past it the answer is 502.
    package struct Limits: Hashable, Sendable {
        /// All lines of one head together.
        package var headBytes = ByteCount.kib(256)
        /// Field lines of one head.
        package var fields = 256
        /// 1xx responses before the final one.
        package var interim = 16

        /// The limits that serve when nothing else is said.
        package init() {}
    }

    private let limits: Limits
    /// Whether a line may end in LF alone, as RFC 9112 §2.2 lets a recipient take it.
    private let allowsBareLF: Bool
    private var status: Int?
    private var fields = HTTPFields()
    private var bytes: Int64 = 0
    private var interim = 0

    /// A reader at the start of an answer.
    package init(limits: Limits = Limits(), allowsBareLF: Bool = false) {
        self.limits = limits
        self.allowsBareLF = allowsBareLF
    }

    /// Takes one line with its line end. Gives the head at the empty line that ends it, and then is ready for the next head.
    /// Throws a 502 for anything that is not a well-formed line.
    package mutating func take(_ line: [UInt8]) throws(Refusal) -> ResponseHead? {
        bytes = bytes.addedClamped(Int64(line.count))
        guard bytes <= limits.headBytes.bytes else { throw .badGateway("the response's head is longer than \(limits.headBytes)") }
        let isStrict = line.suffix(2) == [0x0D, 0x0A]
        guard isStrict || (allowsBareLF && line.last == 0x0A) else { throw .badGateway("a line of the head ends without CRLF") }
        let content = line.dropLast(isStrict ? 2 : 1)
        guard let status else {
            self.status = try ResponseGate.status(ofLine: content)
            return nil
        }
        if content.isEmpty { return try end(status) }
        guard fields.count < limits.fields else { throw .badGateway("the response has more than \(limits.fields) fields") }
        fields.append(try ResponseGate.field(ofLine: content))
        return nil
    }

    private mutating func end(_ status: Int) throws(Refusal) -> ResponseHead {
        if (100...199).contains(status) { interim += 1 }
        guard interim <= limits.interim else { throw .badGateway("more than \(limits.interim) interim responses") }
        let head = ResponseHead(status: status, fields: fields)
        self.status = nil
        fields = HTTPFields()
        bytes = 0
        return head
    }
}
