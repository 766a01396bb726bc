// An operation as exports show it: what a query calls a secret is in no file that is passed on (RFC 6750 §5.3).
import HTTPTypes

extension Operation {
    /// The same with `REDACTED` in the place of what the query of its URL, or of a `Location` in its answer, calls a secret.
    package var redacted: Operation {
        var redacted = self
        redacted.request.target = SecretParameters.redacted(url: request.target)
        if let location = result?.head.fields[.location] {
            redacted.result?.head.fields[.location] = SecretParameters.redacted(url: location)
        }
        return redacted
    }
}
