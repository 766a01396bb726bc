// The safe methods (RFC 9110 §9.2.1).
package import HTTPTypes

extension HTTPRequest.Method {
    /// True if the method is registered as safe (RFC 9110 §9.2.1 and the IANA registry); an unknown method counts as unsafe.
    package var isSafe: Bool {
        switch rawValue {
        case "GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "PROPFIND", "REPORT", "SEARCH", "PRI": true
        default: false
        }
    }
}
