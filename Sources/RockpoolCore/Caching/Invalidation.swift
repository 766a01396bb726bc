// The entries that a write invalidates (RFC 9111 §4.4).
package import HTTPTypes

/// The URIs of the entries that an exchange invalidates.
package enum Invalidation {
    /// Absolute URLs: the target and same-origin `Location` and `Content-Location`; empty unless the method is unsafe and the write
    /// succeeded.
    package static func targets(request: RequestHead, response: ResponseHead) -> [String] {
        guard (200...399).contains(response.status), !isSafe(request.method) else { return [] }
        var targets = [request.url]
        for name in [HTTPField.Name.location, .contentLocation] {
            guard let reference = response.fields.single(name),
                let target = URIReference.resolve(reference, origin: request.origin, target: request.target)
            else { continue }
            if !targets.contains(target) { targets.append(target) }
        }
        return targets
    }

    /// Methods registered as safe (RFC 9110 §9.2.1 and the IANA registry); an unknown method counts as unsafe.
    package static func isSafe(_ method: HTTPRequest.Method) -> Bool {
        switch method.rawValue {
        case "GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "PROPFIND", "REPORT", "SEARCH", "PRI": true
        default: false
        }
    }
}
