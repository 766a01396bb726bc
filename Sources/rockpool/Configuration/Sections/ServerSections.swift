// The root of the configuration and the keys of the server itself: `proxy`, `admin`, `storage`, `cleanup`, `fleet`, `notify`
// (docs/reference/configuration.md).
import RockpoolCore

/// The root of the configuration: every mapping below it (docs/reference/configuration.md).
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

/// The keys of `proxy` and `admin` (docs/reference/configuration.md#proxy).
extension ProxySettings {
    static let section = Section<ProxySettings>([
        .value("listen", field: \.listen, as: .listener),
        .optional("socks", field: \.socks, as: .listener),
        .optional("transparent", field: \.transparent, as: .listener),
        .optionalSection("auth", field: \.auth, of: ProxyAuthentication.section, blank: ProxyAuthentication(file: "")),
        .list("allow", field: \.allow, of: .network).consented,
        .list("connect_ports", field: \.connectPorts, of: .whole(in: 1...65535)).consented,
        .section("timeouts", field: \.timeouts, of: ClientTimeouts.section),
        .section("limits", field: \.limits, of: ClientLimits.section),
        .list("deny_addresses", field: \.denyAddresses, of: .network).consented,
        .list("intercept", field: \.intercept, of: .hostPattern).consented,
        .list("no_proxy", field: \.noProxy, of: .host),
    ])
}

extension ProxyAuthentication {
    static let section = Section<ProxyAuthentication>([.value("file", field: \.file, as: .path).required])
}

extension ClientTimeouts {
    static let section = Section<ClientTimeouts>([
        .value("head", field: \.head, as: .span),
        .value("body", field: \.body, as: .span),
        .value("idle", field: \.idle, as: .span),
        .value("tunnel", field: \.tunnel, as: .span),
    ])
}

extension ClientLimits {
    static let section = Section<ClientLimits>([
        .value("head", field: \.headBytes, as: .limit),
        .value("field", field: \.fieldBytes, as: .limit),
        .value("fields", field: \.fields, as: .whole(in: 1...10_000)),
        .value("target", field: \.targetBytes, as: .limit),
        .value("body_rate", field: \.bodyRate, as: .limit),
        .value("connections", field: \.connections, as: .whole(in: 1...1_000_000)),
        .value("exchanges", field: \.exchanges, as: .whole(in: 1...1_000_000)),
        .value("connections_per_address", field: \.connectionsPerAddress, as: .whole(in: 1...1_000_000)),
        .value("requests_per_connection", field: \.requestsPerConnection, as: .whole(in: 1...1_000_000_000)),
    ])
}

extension AdminSettings {
    static let section = Section<AdminSettings>([
        .value("listen", field: \.listen, as: .listener),
        .list("hosts", field: \.hosts, of: .host).consented,
        .optional("socket", field: \.socket, as: .path),
        .value("socket_access", field: \.socketAccess, as: .word).consented,
    ])
}

/// The keys of `storage`, `cleanup` and of one category (docs/reference/configuration.md#storage, docs/storage.md#limits-and-shares,
/// docs/storage.md#cleanup).
extension StorageSettings {
    static let section = Section<StorageSettings>([
        .value("cache_dir", field: \.cacheDir, as: .path),
        .value("state_dir", field: \.stateDir, as: .path),
        .optional("limit", field: \.limit, as: .limit),
        .value("cache_limit", field: \.cacheBound, as: .bound),
        .value("data_limit", field: \.dataBound, as: .bound),
        .value("min_free", field: \.minFree, as: .size),
        .value("memory_limit", field: \.memoryLimit, as: .size),
        .value("pin_cap", field: \.pinCapPercent, as: .percent),
        .value("principal_share", field: \.principalSharePercent, as: .share),
        .value("unproved_share", field: \.unprovedSharePercent, as: .percent),
        .value("encrypt", field: \.encrypt, as: .word),
        .optional("key_file", field: \.keyFile, as: .path),
    ])
}

extension OutboxSettings {
    static let section = Section<OutboxSettings>([
        .value("store", field: \.store, as: .word).consented,
        .optional("url", field: \.url, as: .databaseURL).consented,
        .optional("url_file", field: \.urlFile, as: .path),
        .optional("node", field: \.node, as: .name),
        .value("require_synchronous", field: \.requiresSynchronous, as: .flag),
        .value("when_unreachable", field: \.whenUnreachable, as: .word),
    ])
}

extension CleanupSettings {
    static let section = Section<CleanupSettings>([
        .value("interval", field: \.interval, as: .span),
        .value("expired_after", field: \.expiredAfter, as: .duration),
        .value("failed_after", field: \.failedAfter, as: .duration),
        .value("unproved_after", field: \.unprovedAfter, as: .duration),
        .value("vacuum_when_free", field: \.vacuumWhenFreePercent, as: .percent),
    ])
}

extension CacheCategory {
    static let section = Section<CacheCategory>([
        .value("ttl", field: \.ttl, as: .duration),
        .value("offline_window", field: \.offlineWindow, as: .duration),
        .value("guarantee", field: \.guaranteePercent, as: .percent),
        .value("share", field: \.sharePercent, as: .percent),
        .value("weight", field: \.weight, as: .whole(in: 1...1000)),
        .optional("max_object", field: \.maxObject, as: .size),
        .value("min_uses", field: \.minUses, as: .whole(in: 1...100)),
    ])
}

/// The keys of `fleet` (docs/reference/configuration.md#fleet).
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

/// The keys of `notify` and `callbacks` (docs/reference/configuration.md#notify).
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
