// Calls of gRPC (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md; docs/guide/programs.md#grpc).
package import HTTPTypes

/// The calls that need trailers and streams in both directions.
package enum RemoteCall {
    /// The type of its messages where no encoding is named.
    private static let type = "application/grpc"

    /// True for a call of gRPC. Those of gRPC-Web and Connect are exchanges like any other.
    package static func isMade(by fields: HTTPFields) -> Bool {
        guard let type = MediaType.essence(of: fields) else { return false }
        return type == Self.type || type.hasPrefix(Self.type + "+")
    }

    /// The trailers of a call that ends with UNAVAILABLE: its upstream is away, or left before it had answered.
    package static func unavailable(_ detail: String) -> HTTPFields { [.grpcStatus: "14", .grpcMessage: encoded(detail)] }

    /// The head of a reply without messages ("Trailers-Only"), which is the end of the call.
    package static func unavailableReply(_ detail: String) -> ResponseHead {
        ResponseHead(status: 200, fields: [.contentType: type] + unavailable(detail))
    }

    /// Bytes other than printable ones of ASCII, and `%`, are percent-encoded.
    private static func encoded(_ detail: String) -> String {
        detail.utf8.reduce(into: "") { text, byte in
            if (0x20...0x7E).contains(byte), byte != UInt8(ascii: "%") {
                text.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                let digits = String(byte, radix: 16, uppercase: true)
                text += "%" + (digits.utf8.count < 2 ? "0" : "") + digits
            }
        }
    }
}

extension HTTPFields {
    fileprivate static func + (fields: HTTPFields, others: HTTPFields) -> HTTPFields {
        var fields = fields
        fields.append(contentsOf: others)
        return fields
    }
}
