// The keys of one upstream (docs/reference/configuration.md#upstreams, `upstreams`).
import RockpoolCore

extension Upstream {
    static let section = Section<Upstream>([
        .value("name", field: \.name, as: .name).required,
        .value("origin", field: \.base, as: .originBase).required,
        .shorthand(
            "gateway", field: \.gatewaySettings, for: \.listen, as: .listener, of: GatewaySettings.section,
            blank: GatewaySettings(listen: "")),
        .value("preserve_host", field: \.preserveHost, as: .flag),
        .value("forwarded", field: \.forwarded, as: .flag),
        .optionalSection(
            "sign", field: \.sign, of: SigningSettings.section, blank: SigningSettings(sigV4: SigV4Rule(keyID: "", secretFile: ""))),
        .value("policy", field: \.policy, as: .word),
        .value("intercept", field: \.intercept, as: .flag),
        .value("identity", field: \.identity, as: .identity),
        .optionalSection("refresh", field: \.refresh, of: RefreshRecipe.section, blank: RefreshRecipe(path: "/")),
        .shorthand(
            "via", field: \.parent, for: \.url, as: .parentProxy, of: ParentSettings.section, blank: ParentSettings(url: "")
        ).consented,
        .section("tls", field: \.tls, of: TLSSettings.section),
        .optionalSection("probe", field: \.probe, of: Probe.section, blank: Probe(path: "/")),
        .section("timeouts", field: \.timeouts, of: UpstreamTimeouts.section),
        .section("queue", field: \.queue, of: QueueSettings.section),
        .section("idempotency", field: \.idempotency, of: IdempotencySettings.section),
        .value("order", field: \.order, as: .word),
        .sections("routes", field: \.routes, of: Route.section, blank: Route(match: "")),
        .sections(
            "resources", field: \.resources, orWord: \.undeclaredResources, of: Resource.section, blank: Resource(collection: "")),
        .section("learn", field: \.learn, of: LearnRule.section),
        .value("send_via", field: \.sendVia, as: .word),
        .value("on_miss", field: \.onMiss, as: .word),
        .value("tags", field: \.tags, as: .word),
        .crossOrigin("cors", field: \.cors),
        .optionalSection("rate_limit", field: \.rateLimit, of: RateLimitRule.section, blank: RateLimitRule()),
        .value("metered", field: \.metered, as: .word),
        .optional("transfer_hours", field: \.transferHours, as: .dayHours),
        .optional("cache_limit", field: \.cacheLimit, as: .limit),
        .optional("data_limit", field: \.dataLimit, as: .limit),
        .abortRule("on_abort", field: \.onAbort),
        .optional("stale_on_error", field: \.staleOnError, as: .duration),
    ])

    /// The defaults over which the keys of an upstream are read.
    static let blank = Upstream(name: "", origin: OriginAddress(scheme: .http, host: ""))
}

extension Upstream {
    fileprivate var base: OriginBase {
        get { OriginBase(origin: origin, path: basePath) }
        set { (origin, basePath) = (newValue.origin, newValue.path) }
    }
}

extension LearnRule {
    static let section = Section<LearnRule>([.value("description", field: \.description, as: .descriptionSource)])
}

extension ScalarFormat where Value == DescriptionSource {
    fileprivate static let descriptionSource = ScalarFormat(
        "linked, off, or a path or URL of the upstream such as /openapi.json",
        show: { source in
            switch source {
            case .linked: .text("linked")
            case .off: .text("off")
            case .at(let reference): .text(reference)
            }
        },
        parse: { text in
            switch text {
            case "linked": .linked
            case "off": .off
            default: ["/", "http://", "https://"].contains(where: text.hasPrefix) && !text.contains { " #".contains($0) } ? .at(text) : nil
            }
        })
}

extension RateLimitRule {
    static let section = Section<RateLimitRule>([
        .optional("requests", field: \.requests, as: .whole(in: 1...1_000_000)),
        .value("per", field: \.per, as: .span),
    ])
}

extension SigningSettings {
    static let section = Section<SigningSettings>([.section("sigv4", field: \.sigV4, of: SigV4Rule.section)])
}

extension SigV4Rule {
    static let section = Section<SigV4Rule>([
        .value("key_id", field: \.keyID, as: .clientID).required,
        .value("secret_file", field: \.secretFile, as: .path).required,
        .value("region", field: \.region, as: .clientID),
        .value("service", field: \.service, as: .clientID),
    ])
}

extension GatewaySettings {
    static let section = Section<GatewaySettings>([
        .value("listen", field: \.listen, as: .listener).required,
        .value("tls", field: \.tls, as: .word),
        .optional("host", field: \.host, as: .lowerHost),
        .optional("path", field: \.path, as: .pathPrefix),
        .list("rewrite_bodies", field: \.rewriteBodies, of: .word),
    ])
}

extension ParentSettings {
    static let section = Section<ParentSettings>([
        .value("url", field: \.url, as: .parentProxy).required,
        .value("auth", field: \.auth, as: .word),
        .optional("user", field: \.user, as: .proxyUser),
        .optional("password_file", field: \.passwordFile, as: .path),
        .value("weight", field: \.weight, as: .whole(in: 1...1000)),
        .value("choose", field: \.choose, as: .word),
        .sections("others", field: \.others, of: further, blank: ParentSettings(url: "")),
    ])

    /// One of the further parents.
    fileprivate static let further = Section<ParentSettings>([
        .value("url", field: \.url, as: .parentProxy).required,
        .value("auth", field: \.auth, as: .word),
        .optional("user", field: \.user, as: .proxyUser),
        .optional("password_file", field: \.passwordFile, as: .path),
        .value("weight", field: \.weight, as: .whole(in: 1...1000)),
    ])
}

extension ParentRule {
    static let section = Section<ParentRule>([
        .list("hosts", field: \.hosts, of: .parentHosts).required,
        .value("url", field: \.parent.url, as: .parentProxyOrDirect).required,
        .value("auth", field: \.parent.auth, as: .word),
        .optional("user", field: \.parent.user, as: .proxyUser),
        .optional("password_file", field: \.parent.passwordFile, as: .path),
        .value("weight", field: \.parent.weight, as: .whole(in: 1...1000)),
        .value("choose", field: \.parent.choose, as: .word),
        .sections("others", field: \.parent.others, of: ParentSettings.further, blank: ParentSettings(url: "")),
    ])
}

extension RefreshRecipe {
    static let section = Section<RefreshRecipe>([
        .value("path", field: \.path, as: .tokenEndpoint).required,
        .optional("login", field: \.login, as: .urlPath),
        .optional("client_id", field: \.clientID, as: .clientID),
        .optional("token_file", field: \.tokenFile, as: .path),
        .value("access_token", field: \.accessToken, as: .pointer),
        .value("refresh_token", field: \.refreshToken, as: .pointer),
    ])
}

extension TLSSettings {
    static let section = Section<TLSSettings>([
        .optional("ca_file", field: \.caFile, as: .path),
        .value("min_version", field: \.minVersion, as: .tlsVersion),
        .optional("client_cert", field: \.clientCert, as: .path),
        .optional("client_key", field: \.clientKey, as: .path),
    ])
}

extension Probe {
    static let section = Section<Probe>([
        .value("path", field: \.path, as: .urlPath).required,
        .value("interval", field: \.interval, as: .span),
        .list("expect", field: \.expect, of: .whole(in: 100...599)),
    ])
}

extension UpstreamTimeouts {
    static let section = Section<UpstreamTimeouts>([
        .value("connect", field: \.connect, as: .span),
        .value("first_byte", field: \.firstByte, as: .span),
        .value("idle", field: \.idle, as: .span),
    ])
}

extension QueueSettings {
    static let section = Section<QueueSettings>([
        .list("methods", field: \.methods, of: .unsafeMethod),
        .value("max_body", field: \.maxBody, as: .limit),
        .value("uncertain", field: \.uncertain, as: .word),
        .value("max_attempts", field: \.maxAttempts, as: .whole(in: 1...1_000_000)),
        .value("credentials", field: \.credentials, as: .word),
        .value("squash", field: \.squash, as: .word),
        .value("repeats", field: \.repeats, as: .word),
        .value("uncertain_hold", field: \.uncertainHold, as: .duration),
    ])
}

extension IdempotencySettings {
    static let section = Section<IdempotencySettings>([
        .value("header", field: \.header, as: .fieldName),
        .value("format", field: \.format, as: .word),
        .value("honoured", field: \.honoured, as: .word),
        .value("ttl", field: \.ttl, as: .duration),
        .value("max_processing", field: \.maxProcessing, as: .duration),
    ])
}

/// The key `cors`: one word, or a list of origins (docs/reference/configuration.md#upstreams).
extension Key {
    /// `remembered`, `off`, or a list of origins of pages.
    static func crossOrigin(_ name: String, field: Field<Model, CrossOriginRule>) -> Key {
        let form = ScalarFormat<String>.pageOrigins
        return Key(
            name: name, schema: form.schema.orList,
            read: { entry, model, path, reader in
                guard let values = reader.values(entry, as: form, at: path) else { return }
                let words = values.filter(CrossOriginRule.words.contains)
                if let word = words.first, values.count > 1, let entry {
                    reader.refuse("\(path.text): \"\(word)\" stands alone, without origins", at: entry.place)
                } else {
                    model[keyPath: field] = CrossOriginRule(values)
                }
            },
            show: { $0[keyPath: field].shown })
    }
}

extension CrossOriginRule {
    fileprivate static let words = ["remembered", "off"]

    fileprivate init(_ values: [String]) {
        switch values {
        case ["remembered"]: self = .remembered
        case ["off"]: self = .off
        default: self = .origins(values)
        }
    }

    fileprivate var shown: ConfigDocument {
        switch self {
        case .remembered: .text("remembered")
        case .off: .text("off")
        case .origins(let origins): .list(origins.map { .text($0) })
        }
    }
}

extension ScalarFormat where Value == String {
    /// One of the words, or the origin of a page as in the field `Origin`: lower case, without a path.
    fileprivate static let pageOrigins = text("remembered, off, or an origin such as https://app.example.com") { text in
        if CrossOriginRule.words.contains(text) { return true }
        guard let separator = text.firstRange(of: "://"), !text[..<separator.lowerBound].isEmpty else { return false }
        let authority = text[separator.upperBound...]
        return !authority.isEmpty && text == text.lowercased()
            && authority.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"/?#@".utf8.contains($0) }
    }
}
