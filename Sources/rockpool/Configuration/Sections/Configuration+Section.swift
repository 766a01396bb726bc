// The root of the configuration: every mapping below it (docs/reference/configuration.md).
import RockpoolCore

extension Configuration {
    static let section = Section<Configuration>([
        .section("proxy", \.proxy, ProxySettings.section),
        .section("admin", \.admin, AdminSettings.section),
        .section("log", \.log, LogSettings.section),
        .section("storage", \.storage, StorageSettings.section),
        .section("cleanup", \.cleanup, CleanupSettings.section),
        .named(
            "categories", \.categories, by: \.name, of: CacheCategory.section,
            blank: { CacheCategory(name: $0) }),
        .section("defaults", \.defaults, DefaultSettings.section),
        .value("network", \.network, .word),
        .sections("upstreams", \.upstreams, of: Upstream.section, blank: Upstream.blank),
    ])
}

extension LogSettings {
    static let section = Section<LogSettings>([
        .value("access", \.access, .word)
    ])
}

extension DefaultSettings {
    static let section = Section<DefaultSettings>([
        .value("category", \.category, .name),
        .value("policy", \.policy, .word),
        .value("intercept", \.intercept, .flag),
        .value("queue_writes", \.queueWrites, .flag),
    ])
}
