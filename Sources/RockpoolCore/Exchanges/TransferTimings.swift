// The phases of one transfer from an upstream, as libcurl measures them (docs/reference/admin-api.md#requests; curl_easy_getinfo(3)).

/// Durations in microseconds, one after the other. A reused connection takes no time for its name, its opening and its handshake.
package struct TransferTimings: Hashable, Sendable {
    /// Until libcurl began: for a place among the connections.
    package var queue: Int64 = 0
    /// The resolution of the host's name.
    package var dns: Int64 = 0
    /// The opening of the connection.
    package var connect: Int64 = 0
    /// The handshake of TLS.
    package var tls: Int64 = 0
    /// From the ready connection to the first byte of the response.
    package var firstByte: Int64 = 0
    /// From the first byte to the end of the body; nil while it arrives.
    package var transfer: Int64?

    package init() {}

    /// Seconds by phase, as the admin API shows them.
    package var json: JSONValue {
        [
            "queue": .seconds(queue), "dns": .seconds(dns), "connect": .seconds(connect), "tls": .seconds(tls),
            "firstByte": .seconds(firstByte), "transfer": transfer.map { .seconds($0) } ?? .null,
        ]
    }
}

extension JSONValue {
    /// Returns a number of seconds from microseconds.
    static func seconds(_ microseconds: Int64) -> JSONValue {
        JSONNumber(literal: "\(Double(microseconds) / 1_000_000)").map { .number($0) } ?? .null
    }
}
