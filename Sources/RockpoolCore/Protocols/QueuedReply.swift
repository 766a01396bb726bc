// The form of the reply to a queued write, by what its client expects and can read (RFC 9110 §12.5.1; docs/outbox.md#client-view,
// docs/outbox.md#replies), and which later request is the same write (docs/outbox.md#repeats).
package import HTTPTypes

/// The form in which a client is told that its write was queued.
package enum QueuedReply: Hashable, Sendable {
    /// 202 with the status document.
    case document
    /// 202 without a body, for a client that excludes JSON, or that reads every body in a format of its own.
    case empty
    /// 202 with a GraphQL response that has no data yet; optimistic: 200 with the data that the mutation's arguments show.
    case graphQL(isOptimistic: Bool)
    /// The answer of S3: 200 with an ETag, or 204.
    case s3(status: Int)
    /// The upstream's own answer where it carries nothing but its status: learned, or that of a server of files.
    case bare(status: Int)
    /// The reply that the configuration names.
    case fixed(FixedReply)

    /// Decides by the configuration, then by the route's kind, then by what the upstream answered before, then by the request.
    /// - Parameters:
    ///   - resource: the declared resource of the write; nil if there is none.
    ///   - isOfFile: true for a write to a file; a declared resource decides about its replies itself.
    ///   - learned: the status of the upstream's last answer to such a write, if that answer carried nothing.
    package init(
        to request: RequestHead, route: Route?, resource: Resource? = nil, isOfFile: Bool = false, learned: Int? = nil
    ) {
        if case .fixed(let reply)? = route?.offlineResponse {
            self = .fixed(reply)
            return
        }
        let isSetByHand = resource?.offlineResponse != nil || route?.offlineResponse == .accepted
        switch (route?.kind, request.method) {
        case (.graphql, _): self = .graphQL(isOptimistic: route?.offlineResponse == .optimistic)
        case (.s3, .put): self = .s3(status: 200)
        case (.s3, .delete): self = .s3(status: 204)
        case _ where isOfFile && route?.offlineResponse == .optimistic:
            // A PUT that names a version replaces a file. Clients take 201 and 204 alike.
            let replaces = request.method == .put && request.fields.contains(.ifMatch)
            self = .bare(status: request.method == .delete || replaces ? 204 : 201)
        default:
            let plain = Self.readsJSON(request) ? QueuedReply.document : .empty
            self = isSetByHand ? plain : learned.map { .bare(status: $0) } ?? plain
        }
    }

    /// True for a reply that only acknowledges the write: programs that do not know 202 take it for a failure, and try again.
    package var isAcceptance: Bool {
        switch self {
        case .document, .empty, .graphQL(isOptimistic: false): true
        case .graphQL, .s3, .bare, .fixed: false
        }
    }

    /// A client of S3 reads every body as XML, and names no media type.
    private static func readsJSON(_ request: RequestHead) -> Bool {
        if SignedRequest.usesSigV4(request) { return false }
        guard let accept = request.fields.value(of: "accept") else { return true }
        return MediaType.isAccepted([.contentType: "application/json"], by: accept)
    }
}

// MARK: - Repeats

/// The mark of a queued write that was answered 202: an equal request of the same client within `time` is the same write. It is kept among
/// the write's fields, and is never sent.
package struct RepeatMark: Hashable, Sendable {
    /// The time after its acceptance within which a request is a repeat.
    package static let time = TimeSpan.seconds(10)

    /// The number of repeats that were answered with this write.
    package var count: Int

    package init(count: Int = 0) { self.count = count }

    /// Reads the mark of a write; nil if it has none.
    package init?(of fields: HTTPFields) {
        guard let text = fields[.rockpoolRepeat], let count = Int(text), count >= 0 else { return nil }
        self.init(count: count)
    }

    package var text: String { String(count) }

    /// True if the fields of two requests mean the same: all are equal, the address of a client without a credential among them, but those of
    /// one sending, such as its time or trace, and those of the credential, which the principal stands for.
    package static func areEqual(_ fields: HTTPFields, _ others: HTTPFields) -> Bool { meaning(fields) == meaning(others) }

    private static func meaning(_ fields: HTTPFields) -> [String: [String]] {
        fields.reduce(into: [:]) { meaning, field in
            let name = field.name.canonicalName
            if !isOfSending(name) { meaning[name, default: []].append(field.value) }
        }
    }

    private static let ofSending: Set<String> = [
        "authorization", "cookie", "rockpool-credential", "rockpool-repeat", "content-length", "user-agent", "accept-encoding", "via",
        "cdn-loop",
        "b3", "baggage", "date", "request-id", "x-request-id", "x-amz-security-token",
    ]
    private static let partsOfSending = [
        "trace", "-span", "client-request-id", "correlation", "retry", "attempt", "-date", "timestamp", "nonce", "signature",
    ]

    private static func isOfSending(_ name: String) -> Bool {
        ofSending.contains(name) || partsOfSending.contains { name.contains($0) }
    }
}

extension QueuedWrite {
    /// The number of equal requests that were answered with this write.
    package var repeats: Int { RepeatMark(of: request.fields)?.count ?? 0 }
}

/// The reply to a queued write of a telemetry route (docs/outbox.md#telemetry).
package enum TelemetryReply {
    /// Returns the answer of a receiver that took everything, by the path and the type of the request; nil where that is not known.
    package static func of(_ request: RequestHead) -> FixedReply? {
        let (path, type) = (request.path, MediaType.essence(of: request.fields) ?? "")
        // OTLP/HTTP: an Export…ServiceResponse without a partial success, in the format of the request.
        if ["/v1/traces", "/v1/metrics", "/v1/logs"].contains(where: { path.hasSuffix($0) }) {
            return MediaType.isJSON(request.fields)
                ? FixedReply(type: "application/json", body: #"{"partialSuccess":{}}"#) : FixedReply(type: "application/x-protobuf")
        }
        if request.fields.value(of: "x-prometheus-remote-write-version") != nil || empty.contains(where: { path.hasSuffix($0) }) {
            return FixedReply(status: 204)
        }
        if path.contains("/services/collector") { return FixedReply(type: "application/json", body: #"{"text":"Success","code":0}"#) }
        if type == "application/x-sentry-envelope" || path.hasSuffix("/envelope/") || path.hasSuffix("/store/") {
            return FixedReply(type: "application/json", body: "{}")
        }
        return nil
    }

    /// Prometheus' remote write, Mimir, InfluxDB 1 to 3, Loki.
    private static let empty = ["/write", "/api/v3/write_lp", "/api/v1/push"]
}
