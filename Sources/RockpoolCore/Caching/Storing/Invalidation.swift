// The entries that a write invalidates (RFC 9111 §4.4).
import HTTPTypes

/// The URIs of the entries that an exchange invalidates.
package enum Invalidation {
    /// Absolute URLs: the target and same-origin `Location` and `Content-Location`; empty unless the method is unsafe and the write
    /// succeeded.
    package static func targets(request: RequestHead, response: ResponseHead) -> [String] {
        guard (200...399).contains(response.status), !request.method.isSafe else { return [] }
        var targets = [request.url]
        for name in [HTTPField.Name.location, .contentLocation] {
            guard let reference = response.fields.single(name),
                let target = URIReference.resolve(reference, origin: request.origin, target: request.target)
            else { continue }
            if !targets.contains(target) { targets.append(target) }
        }
        for target in WebDAVEffect(request)?.resources ?? [] where !targets.contains(target) { targets.append(target) }
        return targets
    }

    /// Prefixes of URLs that a successful write moves, copies or deletes with all that is below them; empty for any other write.
    package static func trees(request: RequestHead, response: ResponseHead) -> [String] {
        (200...299).contains(response.status) ? WebDAVEffect(request)?.trees ?? [] : []
    }
}
