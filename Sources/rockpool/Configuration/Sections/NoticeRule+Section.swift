// The keys of `notify` and `callbacks` (docs/reference/configuration.md#notify).
import RockpoolCore

extension NoticeRule {
    static let section = Section<NoticeRule>([
        .list("on", field: \.on, of: .word),
        .value("oldest_pending", field: \.oldestPending, as: .span),
        .value("storage", field: \.storagePercent, as: .share),
        .value("away", field: \.away, as: .span),
        .value("every", field: \.every, as: .span),
        .list("command", field: \.command, of: .argument).consented,
        .optionalSection(
            "webhook", field: \.webhook, of: WebhookSettings.section, blank: WebhookSettings(url: "", secretFile: "")),
        .value("desktop", field: \.desktop, as: .flag),
    ])
}

extension TracingSettings {
    static let section = Section<TracingSettings>([
        .value("url", field: \.url, as: .collector).required,
        .value("sample", field: \.samplePercent, as: .percent),
        .value("service", field: \.service, as: .name),
    ])
}

extension WebhookSettings {
    static let section = Section<WebhookSettings>([
        .value("url", field: \.url, as: .webhookURL).required.consented,
        .value("secret_file", field: \.secretFile, as: .path).required,
    ])
}

extension CallbackSettings {
    static let section = Section<CallbackSettings>([
        .list("origins", field: \.origins, of: .origin).consented,
        .optional("secret_file", field: \.secretFile, as: .path),
    ])
}
