// Time limits of streams: of events, of messages, and of requests that wait for them (WHATWG HTML §9.2; docs/guide/programs.md#event-streams-and-long-polls).
import HTTPTypes

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
