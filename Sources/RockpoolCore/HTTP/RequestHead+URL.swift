// A request for a URL that a person or a file names, rather than a client's message (RFC 9110 §4.2, RFC 3986 §4.3).
package import HTTPTypes

extension RequestHead {
    /// A request for an absolute `http` or `https` URL. Host and default port are normalised as everywhere; path and query stay as given.
    ///
    /// Throws a 400 that says what is wrong with the URL.
    package init(method: HTTPRequest.Method = .get, url: String, fields: HTTPFields = [:]) throws(Refusal) {
        guard method != .connect, case .absolute(let origin, let target) = try RequestTarget.parse(url, method: method.rawValue) else {
            throw .badRequest("not an absolute http or https URL")
        }
        self.init(method: method, origin: origin, target: target, fields: fields)
    }
}
