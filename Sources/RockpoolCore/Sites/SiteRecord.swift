// The last report of a site, as its collector keeps it (docs/fleet.md#sites).

/// One site's last report.
package struct SiteRecord: Hashable, Sendable {
    package let site: String
    /// The collector's time.
    package var receivedAt: Timestamp
    /// The site's time of sending, which its signature covers.
    package var sentAt: Timestamp
    /// The id of the message.
    package var id: String
    package var report: JSONValue

    package init(site: String, receivedAt: Timestamp, sentAt: Timestamp, id: String, report: JSONValue) {
        (self.site, self.receivedAt, self.sentAt, self.id, self.report) = (site, receivedAt, sentAt, id, report)
    }

    /// Nil for a document that is no record.
    package init?(_ document: JSONValue) {
        guard let site = document["site"]?.string, SiteName.isValid(site), let id = document["id"]?.string,
            let received = document["receivedAt"]?.string.flatMap(RFC3339.parse),
            let sent = document["sentAt"]?.string.flatMap(RFC3339.parse), let report = document["report"]
        else { return nil }
        self.init(site: site, receivedAt: received, sentAt: sent, id: id, report: report)
    }

    package var document: JSONValue {
        [
            "site": .string(site), "receivedAt": .string(RFC3339.format(receivedAt)), "sentAt": .string(RFC3339.format(sentAt)),
            "id": .string(id), "report": report,
        ]
    }

    /// True if a report that was sent at `moment` is not older: an outbox sends in order, so an older one is a copy of a message.
    package func yields(toSentAt moment: Timestamp) -> Bool { moment >= sentAt }
}
