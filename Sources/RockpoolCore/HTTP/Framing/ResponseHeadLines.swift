// Assembles response heads from the raw lines delivered by libcurl, validated and limited in size (RFC 9112 §2.2, §4, §5).
import HTTPTypes

/// Parses the lines of one upstream response: any interim heads, then the final one.
package struct ResponseHeadLines: Sendable {
    /// Limits of an upstream's head; beyond them the response is 502.
    package struct Limits: Hashable, Sendable {
        /// Bytes of all lines of one head.
        package var headBytes = ByteCount.kib(256)
        /// Field lines of one head.
        package var fields = 256
        /// 1xx responses before the final one.
        package var interim = 16

        /// The default limits.
        package init() {}
    }

    private let limits: Limits
    /// True if a line may end in LF alone, which RFC 9112 §2.2 permits a recipient to accept.
    private let allowsBareLF: Bool
    private var status: Int?
    private var fields = HTTPFields()
    private var bytes: Int64 = 0
    private var interim = 0

    /// A parser at the start of a response.
    package init(limits: Limits = Limits(), allowsBareLF: Bool = false) {
        self.limits = limits
        self.allowsBareLF = allowsBareLF
    }

    /// Consumes one line with its line end. Returns the head at the empty line that ends it, and is then ready for the next head. Throws a
    /// 502 for anything that is not a well-formed line.
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
