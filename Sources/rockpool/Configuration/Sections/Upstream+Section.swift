// The keys of one upstream (docs/reference/configuration.md#upstreams, `upstreams`).
import RockpoolCore

extension Upstream {
    static let section = Section<Upstream>([
        .value("name", \.name, .name).required,
        .value("origin", \.origin, .origin).required,
        .optional("gateway", \.gateway, .listener),
        .value("policy", \.policy, .word),
        .value("intercept", \.intercept, .flag),
        .value("identity", \.identity, .identity),
        .optionalSection("refresh", \.refresh, RefreshRecipe.section, blank: RefreshRecipe(path: "/")),
        .optional("via", \.via, .parentProxy),
        .section("tls", \.tls, TLSSettings.section),
        .optionalSection("probe", \.probe, Probe.section, blank: Probe(path: "/")),
        .section("timeouts", \.timeouts, UpstreamTimeouts.section),
        .section("queue", \.queue, QueueSettings.section),
        .section("idempotency", \.idempotency, IdempotencySettings.section),
        .value("order", \.order, .word),
        .sections("routes", \.routes, of: Route.section, blank: Route(match: "")),
        .sections("resources", \.resources, of: Resource.section, blank: Resource(collection: "")),
    ])

    /// The defaults over which the keys of an upstream are read.
    static let blank = Upstream(name: "", origin: OriginAddress(scheme: .http, host: ""))
}

extension RefreshRecipe {
    static let section = Section<RefreshRecipe>([
        .value("path", \.path, .tokenEndpoint).required,
        .optional("login", \.login, .urlPath),
        .optional("client_id", \.clientID, .clientID),
        .optional("token_file", \.tokenFile, .path),
        .value("access_token", \.accessToken, .pointer),
        .value("refresh_token", \.refreshToken, .pointer),
    ])
}

extension TLSSettings {
    static let section = Section<TLSSettings>([
        .optional("ca_file", \.caFile, .path),
        .value("min_version", \.minVersion, .tlsVersion),
        .optional("client_cert", \.clientCert, .path),
        .optional("client_key", \.clientKey, .path),
    ])
}

extension Probe {
    static let section = Section<Probe>([
        .value("path", \.path, .urlPath).required,
        .value("interval", \.interval, .span),
        .list("expect", \.expect, of: .whole(100...599)),
    ])
}

extension UpstreamTimeouts {
    static let section = Section<UpstreamTimeouts>([
        .value("connect", \.connect, .span),
        .value("first_byte", \.firstByte, .span),
        .value("idle", \.idle, .span),
    ])
}

extension QueueSettings {
    static let section = Section<QueueSettings>([
        .list("methods", \.methods, of: .unsafeMethod),
        .value("max_body", \.maxBody, .limit),
        .value("uncertain", \.uncertain, .word),
        .value("credentials", \.credentials, .word),
        .value("squash", \.squash, .word),
    ])
}

extension IdempotencySettings {
    static let section = Section<IdempotencySettings>([
        .value("header", \.header, .fieldName),
        .value("format", \.format, .word),
        .value("honoured", \.honoured, .word),
        .value("ttl", \.ttl, .duration),
        .value("max_processing", \.maxProcessing, .duration),
    ])
}
