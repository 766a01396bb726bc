// Calls of gRPC (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md; docs/guide/programs.md#grpc).
package import HTTPTypes

/// The calls that need trailers and streams in both directions.
package enum RemoteCall {
    /// True for a call of gRPC; gRPC-Web needs neither.
    package static func isMade(by fields: HTTPFields) -> Bool {
        guard let type = MediaType.essence(of: fields) else { return false }
        return type.hasPrefix("application/grpc") && !type.hasPrefix("application/grpc-web")
    }
}
