// Time limits of streams: of events, of messages, and of requests that wait for them (WHATWG HTML §9.2;
// docs/guide/programs.md#event-streams-and-long-polls).
package import HTTPTypes

/// The limits that apply to one exchange.
package enum StreamLimits {
    /// True for a response without an end of its own: its pauses do not show that the upstream is gone.
    package static func isStream(_ response: ResponseHead) -> Bool {
        guard let type = MediaType.essence(of: response.fields) else { return false }
        return type == "text/event-stream" || type.hasPrefix("application/grpc")
    }

    /// The limits for `request`: the route's own, else those of the upstream. The first message of a call or a stream may take as long as
    /// it likes; its client sets the deadline.
    package static func timeouts(_ timeouts: UpstreamTimeouts, for request: RequestHead, route: Route?) -> UpstreamTimeouts {
        var limits = timeouts
        if let own = route?.timeouts {
            limits.firstByte = own.firstByte ?? limits.firstByte
            (limits.idle, limits.streamIdle) = (own.idle, own.idle)
        } else if MediaType.essence(of: request.fields)?.hasPrefix("application/grpc") == true
            || request.fields.value(of: "accept")?.contains(anyCase: "text/event-stream") == true
        {
            limits.firstByte = .forever
        }
        return limits
    }
}

/// Requests of pages for events (WHATWG HTML §9.2.3; docs/guide/programs.md#event-streams-and-long-polls).
extension RequestHead {
    /// True for the request of a page's `EventSource`. It asks again after a broken connection, and never again after another status than 200.
    package var isOfEventSource: Bool {
        guard method == .get, fields[.accept]?.lowercased() == "text/event-stream" else { return false }
        return fields.contains(.referer) || fields.contains(.secFetchMode) || fields.contains(.origin)
    }
}

/// The calls that need trailers and streams in both directions (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md;
/// docs/guide/programs.md#grpc).
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
