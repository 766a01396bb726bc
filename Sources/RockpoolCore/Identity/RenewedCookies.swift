// Cookies to which a site gives a new value in each answer (RFC 6265 §5.3; docs/caching.md#renewed-cookies).
import HTTPTypes

/// The cookies of a browser after an answer that has only renewed some of them.
///
/// Frameworks that keep a session in an encrypted or signed cookie send another value of it with each answer. The session is the same, and so
/// is its user.
package enum RenewedCookies {
    /// The fewest characters of a session's value: a shorter one may be the same in several browsers.
    private static let shortestSession = 16

    /// Returns the value of the `Cookie` field that follows; nil unless the answer is one to a read that was carried out, renews a cookie
    /// which scripts cannot read, and removes and adds none.
    /// - Parameter now: the present, for `Expires`.
    package static func following(_ request: RequestHead, answeredBy answer: ResponseHead, now: Timestamp) -> String? {
        guard request.method == .get || request.method == .head, answer.status == 200 || answer.status == 304,
            request.path.split(separator: "/").allSatisfy({ !endings.contains($0.lowercased()) })
        else { return nil }
        var cookies = request.fields[values: .cookie].flatMap { $0.split(separator: ";") }.map { pair(FieldList.trimmed($0)) }
        var isRenewed = false
        for line in answer.fields[values: .setCookie] {
            let parts = line.split(separator: ";").map { FieldList.trimmed($0) }
            guard let first = parts.first, case let (name, value) = pair(first) else { continue }
            if CookieCrumbs.isOne(name) { continue }
            let attributes = parts.dropFirst().map { pair($0) }
            guard let place = cookies.firstIndex(where: { $0.name == name }), !isRemoved(value, attributes, now: now) else { return nil }
            if cookies[place].value == value { continue }
            let isSession = attributes.contains { $0.name.lowercased() == "httponly" }
            isRenewed = isRenewed || isSession && min(value.count, cookies[place].value.count) >= shortestSession
            cookies[place].value = value
        }
        return isRenewed ? cookies.map { "\($0.name)=\($0.value)" }.joined(separator: "; ") : nil
    }

    /// Segments of paths by which a session ends.
    private static let endings: Set<String> = ["logout", "log-out", "log_out", "signout", "sign-out", "sign_out", "logoff"]

    private static func pair(_ text: some StringProtocol) -> (name: Substring, value: Substring) {
        let text = Substring(text)
        guard let equals = text.firstIndex(of: "=") else { return (text, "") }
        return (Substring(FieldList.trimmed(text[..<equals])), Substring(FieldList.trimmed(text[text.index(after: equals)...])))
    }

    private static func isRemoved(_ value: Substring, _ attributes: [(name: Substring, value: Substring)], now: Timestamp) -> Bool {
        value.isEmpty
            || attributes.contains { name, value in
                switch name.lowercased() {
                case "max-age": Int(value).map { $0 <= 0 } ?? false
                case "expires": HTTPDate.parse(String(value), now: now).map { $0 <= now } ?? false
                default: false
                }
            }
    }
}
