// What one upstream has cost and saved on the wire (docs/reference/admin-api.md#status).

/// Counts since the start of the server, in bytes unless noted.
package struct UpstreamTraffic: Hashable, Sendable {
    /// Number of requests that were sent.
    package var requests = 0
    /// Heads and bodies of requests.
    package var sentBytes: Int64 = 0
    /// Heads and bodies of responses.
    package var receivedBytes: Int64 = 0
    /// The part of both that no client caused: probes, refreshes, pulls.
    package var costBytes: Int64 = 0
    /// Bodies that clients received.
    package var deliveredBytes: Int64 = 0
    /// The part of it that came from the cache, or from the fetch of another client.
    package var savedBytes: Int64 = 0

    package init() {}

    /// Counts one request with its response.
    package mutating func count(sent: Int64, received: Int64, forClient: Bool) {
        requests += 1
        sentBytes += sent
        receivedBytes += received
        if !forClient { costBytes += sent + received }
    }

    /// Counts the body of one reply.
    package mutating func deliver(_ bytes: Int64, isSaved: Bool) {
        deliveredBytes += bytes
        if isSaved { savedBytes += bytes }
    }
}
