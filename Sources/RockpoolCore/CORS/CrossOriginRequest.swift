// The CORS fields of a request (Fetch, *CORS protocol*; docs/caching.md#pages-of-other-origins).
import HTTPTypes

/// A request that a browser has marked with the origin of its page.
package struct CrossOriginRequest: Hashable, Sendable {
    /// The request for which a preflight asks permission.
    package struct Preflight: Hashable, Sendable {
        package var method: String
        /// Names of the fields beyond the safelisted ones, in lower case.
        package var fields: [String]
        /// True if the page is of a less private network than the server (Private Network Access).
        package var namesPrivateNetwork: Bool
    }

    /// The value of `Origin`: `scheme://authority`, or `null`.
    package let origin: String
    /// Nil unless the request is a preflight.
    package let preflight: Preflight?

    /// Maximum length in bytes of an origin that is remembered.
    static let originLimit = 300

    /// Nil if the request has no `Origin`, more than one, or one of more than 300 bytes.
    package init?(_ request: RequestHead) {
        guard let origin = request.fields.single(.origin), !origin.isEmpty, origin.utf8.count <= Self.originLimit,
            !origin.utf8.contains(where: { $0 <= 0x20 })
        else { return nil }
        self.origin = origin
        guard request.isPreflight, let method = request.fields[.accessControlRequestMethod] else {
            preflight = nil
            return
        }
        preflight = Preflight(
            method: method, fields: request.fields.listed(.accessControlRequestHeaders).map { $0.lowercased() },
            namesPrivateNetwork: request.fields[.accessControlRequestPrivateNetwork] == "true")
    }
}

extension RequestHead {
    /// True for the request by which a browser asks for the permission of another one (Fetch §3.3.2).
    package var isPreflight: Bool { method == .options && fields.contains(.accessControlRequestMethod) }
}

extension HTTPFields {
    /// The members of all lines of a list-based field.
    func listed(_ name: HTTPField.Name) -> [String] { self[values: name].flatMap { FieldList.members(of: $0).map(String.init) } }
}
