// The request for credentials that is kept for the time while its upstream is away (docs/caching.md#challenges).
import HTTPTypes

/// Many programs send their password only after a 401 that asks for it (RFC 9110 §11.6.1). Without that answer they would never reach the
/// copies that are stored for their identity.
enum KeptChallenge {
    /// True for a 401 that asks a request without credentials for a name and a password, at an upstream whose answers are kept.
    static func isOne(_ response: ResponseHead, to request: RequestHead, context: StorageContext) -> Bool {
        response.status == 401 && context.policy == .offlineFirst && context.identity == nil && !request.fields.contains(.authorization)
            && response.fields[values: .wwwAuthenticate].contains(where: asksForPassword)
    }

    /// One field may hold several challenges (RFC 9110 §11.6.1). The copies of one user of `Basic` have one identity, whatever the moment.
    private static func asksForPassword(_ value: String) -> Bool {
        value.split(separator: ",").contains { FieldList.trimmed($0).lowercased().hasPrefix("basic") }
    }
}
