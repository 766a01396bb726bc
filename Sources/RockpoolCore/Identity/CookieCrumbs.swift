// Cookies that identify no user (docs/caching.md#partitions *Identity*).

/// Cookies of analytics, advertising, load balancers and bot detection. They name a visit, a server or a browser, and many have a new value in
/// each request: neither the identity of a request nor the variant that it selects depends on them.
package enum CookieCrumbs {
    private static let names: Set<Substring> = [
        // Google Analytics, before and after 2020.
        "_ga", "_gid", "_gat", "__utma", "__utmb", "__utmc", "__utmt", "__utmv", "__utmx", "__utmxx", "__utmz",
        // Meta, Microsoft, HubSpot, TikTok, Pinterest, LinkedIn.
        "_fbp", "_fbc", "_clck", "_clsk", "_uetsid", "_uetvid", "__hstc", "__hssc", "__hssrc", "hubspotutk", "_ttp", "_pin_unauth", "li_gc",
        // Load balancers of Amazon Web Services.
        "AWSALB", "AWSALBCORS", "AWSELB", "AWSELBCORS",
        // Bot detection of Cloudflare, Akamai, Imperva and DataDome.
        "__cf_bm", "_cfuvid", "_abck", "ak_bmsc", "bm_mi", "bm_sv", "bm_sz", "datadome",
    ]

    /// Google Analytics and its advertising, Matomo, Hotjar, Amazon Web Services, Imperva, Amplitude.
    private static let prefixes = [
        "_ga_", "_gat_", "_gac_", "_gcl_", "_dc_gtm_", "_pk_", "_hj", "AWSALBTG", "incap_ses_", "visid_incap_", "nlbi_", "AMP_",
    ]

    /// Returns the value of a `Cookie` field without these cookies: unchanged if there are none, empty if there are no others.
    package static func removed(from value: String) -> String {
        let pairs = value.split(separator: ";").map { FieldList.trimmed($0) }
        let kept = pairs.filter { !isOne($0.prefix { $0 != "=" }) }
        return kept.count == pairs.count ? value : kept.joined(separator: "; ")
    }

    /// True if a cookie of this name is one.
    static func isOne(_ name: Substring) -> Bool { names.contains(name) || prefixes.contains { name.hasPrefix($0) } }
}
