// The media types that a request asks for (RFC 9110 §12.5.1).
import HTTPTypes

extension MediaType {
    /// True if the client expects pages: its `Accept` names HTML.
    static func isAskedForPages(_ request: RequestHead) -> Bool { request.fields[.accept]?.contains(anyCase: "html") ?? false }
}
