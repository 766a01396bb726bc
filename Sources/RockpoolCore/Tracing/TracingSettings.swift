// Where traces are sent (docs/reference/configuration.md#tracing).
import HTTPTypes

/// The collector of spans.
package struct TracingSettings: Hashable, Sendable {
    /// `otlp://host:port`, `otlps://host:port`, or the http or https URL of an OTLP receiver.
    package var url: String
    /// The part in percent of traces begun here that is recorded.
    package var samplePercent = 100
    /// The name of the service in traces.
    package var service = "rockpool"

    package init(url: String) { self.url = url }

    /// The URL that spans are posted to; nil for a text that is no such URL.
    package var endpoint: RequestHead? {
        var text = url
        var isShort = false
        for (short, scheme) in [("otlp://", "http://"), ("otlps://", "https://")] where text.hasPrefix(short) {
            (text, isShort) = (scheme + text.dropFirst(short.count), true)
        }
        guard var head = try? RequestHead(url: text) else { return nil }
        if isShort {
            guard head.target == "/" else { return nil }
            // The default port of OTLP over HTTP.
            if !text.dropFirst(8).contains(":") { head.origin.port = 4318 }
        }
        if head.target == "/" { head.target = "/v1/traces" }
        head.method = .post
        return head
    }
}
