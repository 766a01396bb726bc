// The answer of another gateway of the site: taken only if it is as good as the origin's own (docs/fleet.md#caches).
import HTTPTypes

/// Judges answers of gateways.
package enum ParentAnswer: Hashable, Sendable {
    /// It may stand for the origin's answer.
    case usable
    /// The gateway has no such answer now: the origin is asked.
    case unusable
    /// It is not the answer of a gateway.
    case foreign

    /// - Parameter greatestAge: seconds.
    package static func judge(_ head: ResponseHead, greatestAge: Int64) -> ParentAnswer {
        guard let member = lastMember(of: .cacheStatus, in: head.fields), isOurs(member) else { return .foreign }
        // With `Proxy-Status` the gateway has made the answer, or serves a stored one because the origin does not answer it.
        if let status = lastMember(of: .proxyStatus, in: head.fields), isOurs(status) { return .unusable }
        let isStale = member.split(separator: ";").contains { $0.trimmingOWS().hasPrefix("ttl=-") }
        let isGenerated = member.split(separator: ";").contains { $0.trimmingOWS() == "detail=generated" }
        let age = head.fields[.age].flatMap { Int64($0) } ?? 0
        return isStale || isGenerated || age > greatestAge ? .unusable : .usable
    }

    /// True if a probe was answered by a gateway.
    package static func isAlive(_ head: ResponseHead) -> Bool {
        (200...299).contains(head.status) && lastMember(of: .cacheStatus, in: head.fields).map(isOurs) == true
    }

    private static func isOurs(_ member: Substring) -> Bool { member == "rockpool" || member.hasPrefix("rockpool;") }

    private static func lastMember(of name: HTTPField.Name, in fields: HTTPFields) -> Substring? {
        // A gateway appends its member as a line of its own, and its texts have no comma outside of quotes.
        fields[values: name].last.map { Substring($0).trimmingOWS() }
    }
}
