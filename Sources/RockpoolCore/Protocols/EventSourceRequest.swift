// Requests of pages for events (WHATWG HTML §9.2.3; docs/guide/programs.md#event-streams-and-long-polls).
import HTTPTypes

extension RequestHead {
    /// True for the request of a page's `EventSource`. It asks again after a broken connection, and never again after another status than 200.
    package var isOfEventSource: Bool {
        guard method == .get, fields[.accept]?.lowercased() == "text/event-stream" else { return false }
        return fields.contains(.referer) || fields.contains(.secFetchMode) || fields.contains(.origin)
    }
}
