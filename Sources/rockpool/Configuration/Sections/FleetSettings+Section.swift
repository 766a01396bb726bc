// The keys of `fleet` (docs/reference/configuration.md#fleet).
import RockpoolCore

extension FleetSettings {
    static let section = Section<FleetSettings>([
        .list("parents", field: \.parents, of: .gatewayProxy).consented,
        .optional("self", field: \.own, as: .gatewayProxy).consented,
        .optionalSection(
            "report", field: \.report, of: SiteReportSettings.section, blank: SiteReportSettings(url: "", site: "", secretFile: "")),
    ])
}

extension SiteReportSettings {
    static let section = Section<SiteReportSettings>([
        .value("url", field: \.url, as: .webhookURL).required.consented,
        .value("site", field: \.site, as: .siteName).required,
        .value("secret_file", field: \.secretFile, as: .path).required,
        .value("every", field: \.every, as: .span),
    ])
}
