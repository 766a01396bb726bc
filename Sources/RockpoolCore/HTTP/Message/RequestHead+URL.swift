// Creates a request for a URL given by a user or a file instead of a client's message (RFC 9110 §4.2, RFC 3986 §4.3).
package import HTTPTypes

extension RequestHead {
    /// A request for an absolute `http` or `https` URL. Host and default port are normalised as usual; path and query are unchanged.
    ///
    /// Throws a 400 that describes the error in the URL.
    package init(method: HTTPRequest.Method = .get, url: String, fields: HTTPFields = [:]) throws(Refusal) {
        guard method != .connect, case .absolute(let origin, let target) = try RequestTarget.parse(url, method: method.rawValue) else {
            throw .badRequest("not an absolute http or https URL")
        }
        self.init(method: method, origin: origin, target: target, fields: fields)
    }
}
