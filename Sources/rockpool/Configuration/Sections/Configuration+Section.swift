// The root of the configuration: every mapping below it (docs/reference/configuration.md).
import RockpoolCore

extension Configuration {
    static let section = Section<Configuration>([
        .section("proxy", field: \.proxy, of: ProxySettings.section),
        .section("admin", field: \.admin, of: AdminSettings.section),
        .section("log", field: \.log, of: LogSettings.section),
        .section("storage", field: \.storage, of: StorageSettings.section),
        .section("outbox", field: \.outbox, of: OutboxSettings.section),
        .section("cleanup", field: \.cleanup, of: CleanupSettings.section),
        .named(
            "categories", field: \.categories, by: \.name, of: CacheCategory.section,
            blank: { CacheCategory(name: $0) }),
        .section("defaults", field: \.defaults, of: DefaultSettings.section),
        .list("secrets", field: \.secrets, of: .parameterName),
        .value("network", field: \.network, as: .word),
        .sections("via", field: \.via, of: ParentRule.section, blank: ParentRule()).consented,
        .shorthand(
            "tracing", field: \.tracing, for: \.url, as: .collector, of: TracingSettings.section, blank: TracingSettings(url: "")
        ).consented,
        .sections("notify", field: \.notify, of: NoticeRule.section, blank: NoticeRule()),
        .section("callbacks", field: \.callbacks, of: CallbackSettings.section),
        .section("fleet", field: \.fleet, of: FleetSettings.section),
        .sections("upstreams", field: \.upstreams, of: Upstream.section, blank: Upstream.blank),
    ])
}

extension LogSettings {
    static let section = Section<LogSettings>([
        .value("access", field: \.access, as: .word),
        .value("format", field: \.format, as: .word),
    ])
}

extension DefaultSettings {
    static let section = Section<DefaultSettings>([
        .value("category", field: \.category, as: .name),
        .value("policy", field: \.policy, as: .word),
        .value("intercept", field: \.intercept, as: .flag).consented,
        .value("queue_writes", field: \.queueWrites, as: .flag),
        .abortRule("on_abort", field: \.onAbort),
        .optional("stale_on_error", field: \.staleOnError, as: .duration),
    ])
}
