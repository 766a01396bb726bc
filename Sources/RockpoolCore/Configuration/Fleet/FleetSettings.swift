// The settings of a gateway among others: the caches of its site, the office that it reports to (docs/reference/configuration.md#fleet).

/// What a gateway has to do with others.
package struct FleetSettings: Hashable, Sendable {
    /// The proxy listeners of all gateways of the site, which share what their caches hold; empty: none.
    package var parents: [String] = []
    /// The one of `parents` that is this gateway.
    package var own: String?
    /// The reports to a collector; nil: none.
    package var report: SiteReportSettings?

    package init() {}
}

/// The reports of a site to a collector (`rockpool fleet collect`).
package struct SiteReportSettings: Hashable, Sendable {
    /// Where reports are posted.
    package var url: String
    /// The name under which the collector knows this site.
    package var site: String
    /// The file with the signing secret.
    package var secretFile: String
    package var every = TimeSpan.minutes(5)

    package init(url: String, site: String, secretFile: String) {
        (self.url, self.site, self.secretFile) = (url, site, secretFile)
    }
}
