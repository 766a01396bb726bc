// The files the admin server serves: the dashboard and the description of its API, compiled in so that nothing is read at run time.

/// A file to be served.
package struct AdminPage: Sendable {
    /// The value of `Content-Type`.
    package let mediaType: String
    package let bytes: [UInt8]
}

extension AdminPage {
    /// `GET /`.
    package static let index = AdminPage(mediaType: "text/html; charset=utf-8", bytes: PackageResources.index_html)
    /// `GET /openapi.yaml`.
    package static let openAPI = AdminPage(mediaType: "application/yaml", bytes: PackageResources.openapi_yaml)

    /// The files below `/dashboard/`, by name.
    package static let parts: [String: AdminPage] = [
        "icon.svg": AdminPage(mediaType: "image/svg+xml", bytes: PackageResources.icon_svg),
        "dashboard.css": AdminPage(mediaType: "text/css; charset=utf-8", bytes: PackageResources.dashboard_css),
        "dashboard.js": script(PackageResources.dashboard_js),
        "dom.js": script(PackageResources.dom_js),
        "api.js": script(PackageResources.api_js),
        "charts.js": script(PackageResources.charts_js),
        "diff.js": script(PackageResources.diff_js),
        "overview.js": script(PackageResources.overview_js),
        "outbox.js": script(PackageResources.outbox_js),
        "conflicts.js": script(PackageResources.conflicts_js),
        "cache.js": script(PackageResources.cache_js),
        "storage.js": script(PackageResources.storage_js),
        "sync.js": script(PackageResources.sync_js),
        "requests.js": script(PackageResources.requests_js),
        "setup.js": script(PackageResources.setup_js),
        "theme.js": script(PackageResources.theme_js),
        "paging.js": script(PackageResources.paging_js),
        "entity.js": script(PackageResources.entity_js),
        "configuration.js": script(PackageResources.configuration_js),
        "help.js": script(PackageResources.help_js),
        "docs.js": script(PackageResources.docs_js),
    ]

    private static func script(_ bytes: [UInt8]) -> AdminPage { AdminPage(mediaType: "text/javascript; charset=utf-8", bytes: bytes) }
}
