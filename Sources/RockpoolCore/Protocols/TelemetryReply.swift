// What receivers of telemetry answer by their protocols, for those whose answer was never seen (docs/outbox.md#telemetry).
import HTTPTypes

/// The reply to a queued write of a telemetry route.
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
