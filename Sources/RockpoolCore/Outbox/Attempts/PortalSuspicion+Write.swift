// Detects a portal in the response to a write (docs/outbox.md#answers).

extension PortalSuspicion {
    /// The reason why a response to a write apparently did not come from the upstream; nil without suspicion.
    package static func judge(_ response: ResponseHead, toWrite request: RequestHead) -> String? {
        AttemptResponse(head: response, bodyStart: [], request: request).portal
    }
}
