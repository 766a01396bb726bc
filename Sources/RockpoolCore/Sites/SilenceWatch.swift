// Sites that have not reported for too long: told once, and again when they report (docs/fleet.md#sites).

/// Decides which sites are silent.
package struct SilenceWatch: Sendable {
    /// A change that an operator is told about.
    package struct News: Hashable, Sendable {
        package let site: String
        package let isSilent: Bool
        /// The last report; nil before the first one.
        package let heardAt: Timestamp?

        /// One sentence for people.
        package var summary: String {
            guard isSilent else { return "\(site) reports again" }
            return heardAt.map { "\(site) has not reported since \(RFC3339.format($0))" } ?? "\(site) has not reported yet"
        }

        /// The input of an operator's program, in the form of a notice.
        package func json(at moment: Timestamp) -> JSONValue {
            let event = isSilent ? "silent" : "heard"
            return [
                "type": .string("rockpool.\(event)"), "timestamp": .string(RFC3339.format(moment)),
                "data": [
                    "event": .string(event), "site": .string(site), "summary": .string(summary),
                    "heardAt": .optional(heardAt.map(RFC3339.format)), "next": "rockpool fleet status",
                ],
            ]
        }
    }

    package let limit: TimeSpan
    private let startedAt: Timestamp
    private var silent: Set<String> = []

    /// - Parameters:
    ///   - limit: the time without a report from which a site is silent.
    ///   - startedAt: the start of the collector. The time before it does not count.
    package init(limit: TimeSpan, startedAt: Timestamp) { (self.limit, self.startedAt) = (limit, startedAt) }

    /// True if a site has not reported for too long.
    /// - Parameter heardAt: its last report; nil before the first one.
    package func isSilent(heardAt: Timestamp?, now: Timestamp) -> Bool {
        now - max(heardAt ?? startedAt, startedAt) >= limit
    }

    /// Returns the sites that have become silent since the last call, and those that report again.
    package mutating func news(_ sites: [(name: String, heardAt: Timestamp?)], now: Timestamp) -> [News] {
        let before = silent
        silent = Set(sites.filter { isSilent(heardAt: $0.heardAt, now: now) }.map(\.name))
        return sites.compactMap { site in
            let isSilent = silent.contains(site.name)
            return isSilent == before.contains(site.name) ? nil : News(site: site.name, isSilent: isSilent, heardAt: site.heardAt)
        }
    }
}
