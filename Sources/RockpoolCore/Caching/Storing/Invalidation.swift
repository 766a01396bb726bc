// The entries that a write invalidates (RFC 9111 §4.4).
import HTTPTypes

/// The URIs of the entries that an exchange invalidates.
package enum Invalidation {
    /// Absolute URLs: the target, same-origin `Location` and `Content-Location`, and the object that an upload completes; empty unless the
    /// method is unsafe and the write succeeded.
    package static func targets(request: RequestHead, response: ResponseHead) -> [String] {
        guard (200...399).contains(response.status), !request.method.isSafe else { return [] }
        var targets = [request.url]
        for name in [HTTPField.Name.location, .contentLocation] {
            guard let reference = response.fields.single(name),
                let target = URIReference.resolve(reference, origin: request.origin, target: request.target)
            else { continue }
            if !targets.contains(target) { targets.append(target) }
        }
        let others = (WebDAVEffect(request)?.resources ?? []) + [uploadedObject(of: request)].compactMap(\.self)
        for target in others where !targets.contains(target) { targets.append(target) }
        return targets
    }

    /// The URL of the object that S3 makes of uploaded parts (`CompleteMultipartUpload`); nil for another request.
    package static func uploadedObject(of request: RequestHead) -> String? {
        guard request.method == .post, let query = request.target.split(separator: "?", maxSplits: 1).dropFirst().first,
            query.split(separator: "&").contains(where: { $0.hasPrefix("uploadId=") })
        else { return nil }
        return request.origin.url + request.path
    }

    /// Prefixes of URLs that a successful write moves, copies or deletes with all that is below them; empty for any other write.
    package static func trees(request: RequestHead, response: ResponseHead) -> [String] {
        (200...299).contains(response.status) ? WebDAVEffect(request)?.trees ?? [] : []
    }
}
