// Which credentials a registry has let in lately, and whose tokens they are. What is forgotten is asked for again.

/// The answers of registries about credentials, by their names, while the server runs.
package struct RegistryAdmissions: Sendable {
    /// Number of tokens, and of answers.
    package static let limit = 4096
    /// After this time a registry is asked again.
    package static let askedAgainAfter = TimeSpan.minutes(10)

    private struct Token {
        let holder: String
        let expiresAt: Timestamp
    }

    private struct Place: Hashable {
        let credential: String
        let repository: String
    }

    private var tokens: [String: Token] = [:]
    private var admitted: [Place: Timestamp] = [:]

    package init() {}

    /// Notes that a token was given to the client of a name.
    package mutating func note(token: String, of holder: String, until end: Timestamp, now: Timestamp) {
        if tokens.count >= Self.limit { tokens = tokens.filter { $0.value.expiresAt > now } }
        if tokens.count >= Self.limit { tokens = [:] }
        tokens[token] = Token(holder: holder, expiresAt: end)
    }

    /// The name of the client that a token was given to.
    package func holder(ofToken token: String) -> String? { tokens[token]?.holder }

    /// Notes what a registry has answered to a credential.
    /// - Parameters:
    ///   - repository: its URL.
    ///   - token: the name of the token, which is good no longer than it was given for.
    package mutating func note(_ isAdmitted: Bool, _ credential: String, to repository: String, token: String?, now: Timestamp) {
        let place = Place(credential: credential, repository: repository)
        guard isAdmitted else {
            admitted[place] = nil
            return
        }
        if admitted.count >= Self.limit { admitted = admitted.filter { $0.value > now } }
        if admitted.count >= Self.limit { admitted = [:] }
        admitted[place] = min(now + Self.askedAgainAfter, token.flatMap { tokens[$0]?.expiresAt } ?? .distantFuture)
    }

    /// True if the registry need not be asked again.
    package func isAdmitted(_ credential: String, to repository: String, now: Timestamp) -> Bool {
        admitted[Place(credential: credential, repository: repository)].map { $0 > now } ?? false
    }

    /// True if the registry's last answer was a yes, however long ago.
    package func wasAdmitted(_ credential: String, to repository: String) -> Bool {
        admitted[Place(credential: credential, repository: repository)] != nil
    }
}
