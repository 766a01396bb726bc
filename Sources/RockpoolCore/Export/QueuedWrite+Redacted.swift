// An operation without the secrets of its URLs, which must not be in an exported file (RFC 6750 §5.3).
import HTTPTypes

extension QueuedWrite {
    /// The operation with `REDACTED` in the place of secret query parameters in its URL and in the `Location` of its answer.
    package var redacted: QueuedWrite {
        var redacted = self
        redacted.request.target = SecretParameters.redacted(url: request.target)
        if let location = result?.head.fields[.location] {
            redacted.result?.head.fields[.location] = SecretParameters.redacted(url: location)
        }
        return redacted
    }
}
