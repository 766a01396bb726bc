// Decides whose a credential is that claims a name: by asking for one place with it and without it (docs/security-model.md#proof).

import HTTPTypes

/// The answers to one read with and without the credential, and what is to be asked next.
///
/// An earlier refusal, or a field such as `private`, may have other reasons than who asks: a firewall, a limit, a framework that marks every
/// page. What differs with the credential, and with it alone, does not.
package struct CredentialComparison: Sendable {
    /// What of an answer is compared.
    package struct Answer: Hashable, Sendable {
        private let status: Int
        private let digest: Int?

        /// A limit on the rate of requests says nothing of who asks.
        private let isLimit: Bool

        /// - Parameter digest: of the whole body; nil if that was not read.
        package init(_ head: ResponseHead, digest: Int?) {
            (status, self.digest, isLimit) = (head.status, digest, head.fields.contains(.retryAfter))
        }

        fileprivate var isDone: Bool { (200...299).contains(status) }
        fileprivate var isRead: Bool { isDone && digest != nil }
        fileprivate var isRefusal: Bool { (status == 401 || status == 403) && !isLimit }
    }

    package enum Step: Hashable, Sendable {
        case ask(withCredential: Bool)
        case ended(Ending)
    }

    package enum Ending: Hashable, Sendable {
        /// The upstream has looked at the credential.
        case proved
        /// The place answers everybody alike.
        case open
        /// The answers say nothing.
        case unclear
    }

    private var answers: [Answer] = []

    package init() {}

    /// What is asked first.
    package static let first = Step.ask(withCredential: false)

    /// Takes the answer to what was asked last. Without a refusal, the place must answer twice alike without the credential, before and after
    /// the other answer with it: a page that differs each time is no evidence.
    package mutating func take(_ answer: Answer) -> Step {
        answers.append(answer)
        switch answers.count {
        case 1: return answer.isRead || answer.isRefusal ? .ask(withCredential: true) : .ended(.unclear)
        case 2:
            guard answer.isDone else { return .ended(.unclear) }
            if answers[0].isRefusal { return .ended(.proved) }
            guard answer.isRead else { return .ended(.unclear) }
            return answer == answers[0] ? .ended(.open) : .ask(withCredential: false)
        default: return .ended(answer == answers[0] ? .proved : .unclear)
        }
    }
}

extension CredentialComparison {
    /// The read that is sent for a comparison: the same one, but for what belongs to one request alone, and without `Authorization`, unless
    /// `withCredential`. All else that may say who asks stays.
    package static func question(like request: RequestHead, withCredential: Bool) -> RequestHead {
        var question = request
        question.fields = HTTPFields()
        for field in request.fields where !ofOneRequest(field.name) && (withCredential || field.name != .authorization) {
            question.fields.append(field)
        }
        if request.method != .get {
            question.method = HTTPRequest.Method("PROPFIND") ?? .get
            question.fields[.depth] = "0"
        }
        return question
    }

    private static func ofOneRequest(_ name: HTTPField.Name) -> Bool {
        ["if-", "content-", "rockpool-"].contains { name.canonicalName.hasPrefix($0) }
            || ["range", "cache-control", "pragma", "prefer", "expect", "te", "upgrade", "connection"].contains(name.canonicalName)
    }
}
