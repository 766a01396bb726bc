// Request fields that are not in the cache key, by what they may do to the response (docs/security-model.md#unkeyed-inputs, which lists
// them).
package import HTTPTypes

/// The kind of a request field, by its name.
package enum UnkeyedField: String, CaseIterable, Sendable {
    /// Makes frameworks respond for another host, path, method or client: no response to a request with it is stored.
    case overrides
    /// Carries a key or a token: it names the client, as `Authorization` does, and its value is a secret (`SecretFields`).
    case identifies
    /// Names a user, a tenant, a device, a route or a view of the page: each response counts as one whose `Vary` names it.
    case selects
    /// Names one request, or the trace that it belongs to: it has a value of its own in each request, and changes no response.
    case correlates
    /// Free text that most clients send. A response that repeats it counts as one that varies by it.
    case describes
    /// Read by this proxy or by a specification: conditions, credentials, preferences for which an origin has `Vary`, what browsers add.
    case known
    /// Any other. As `describes`; so does a response that cannot be read.
    case unknown

    /// The kind of the field with this name.
    package init(_ name: HTTPField.Name) { self = Self.of(name.canonicalName.utf8.span) }

    private static func of(_ name: Span<UInt8>) -> UnkeyedField {
        let kind = table.value(of: name)
        return switch kind {
        case .selects?: byWords(name) == .identifies ? .identifies : .selects
        case nil: byWords(name) ?? .unknown
        // Frameworks take it for the field with `-`, which caches and the origin's Vary mean.
        case .describes?, .known?: hasUnderscore(name) ? .overrides : kind ?? .unknown
        case let kind?: kind
        }
    }

    private static func hasUnderscore(_ name: Span<UInt8>) -> Bool {
        for index in name.indices where name[index] == UInt8(ascii: "_") { return true }
        return false
    }

    /// True if a field may make the framework treat the request as another method, so that no stored response may be served for it.
    package static func replacesMethod(in fields: HTTPFields) -> Bool {
        fields.contains { $0.name.canonicalName.utf8.first == 0x78 && methodTable.value(of: $0.name.canonicalName.utf8.span) != nil }
    }

    /// True if the value is a key or a token, also of a field that counts for more than that (`X-Forwarded-Access-Token`).
    static func carriesKey(_ name: HTTPField.Name) -> Bool {
        let name = name.canonicalName.utf8.span
        return switch of(name) {
        case .identifies: true
        case .overrides: byWords(name) == .identifies
        case .selects, .correlates, .describes, .known, .unknown: false
        }
    }

    // MARK: - Names

    private static let table = FieldNameTable(names, prefixes: prefixes)

    /// The names of each kind, and beginnings of names. Exact names come first, then beginnings, then words.
    static let names: [(String, UnkeyedField)] =
        overriding.map { ($0, .overrides) } + SecretFields.identifying.map { ($0.canonicalName, .identifies) }
        + correlating.map { ($0, .correlates) } + describing.map { ($0, .describes) }
        + selecting.map { ($0, .selects) } + wellKnown.map { ($0, .known) }
    static let prefixes: [(String, UnkeyedField)] =
        overridingPrefixes.map { ($0, .overrides) } + correlatingPrefixes.map { ($0, .correlates) }
        + selectingPrefixes.map { ($0, .selects) } + wellKnownPrefixes.map { ($0, .known) }

    private static let methods: Set<String> = ["x-http-method-override", "x-http-method", "x-method-override"]
    private static let methodTable = FieldNameTable(methods.map { ($0, true) })
    static let overriding: Set<String> = methods.union([
        "forwarded", "x-host", "x-http-host-override", "x-host-override", "x-backend-host", "x-url-scheme", "front-end-https",
        "x-real-ip", "true-client-ip", "client-ip", "x-client-ip", "x-cluster-client-ip", "x-remote-addr", "x-remote-ip",
        "cf-connecting-ip", "fastly-client-ip", "x-proxy-url", "x-wap-profile",
    ])
    static let overridingPrefixes = ["x-forwarded", "x-original-", "x-rewrite-", "x-override-"]

    private static let correlating = [
        "x-request-id", "x-correlation-id", "x-amzn-trace-id", "traceparent", "tracestate", "baggage", "b3", "sentry-trace", "x-trace",
        "x-cloud-trace-context", "newrelic", "grpc-trace-bin",
        "elastic-apm-traceparent", "x-amz-cf-id", "x-azure-ref", "cf-ray", "x-vercel-id", "x-arr-log-id", "x-request-start",
        "x-queue-start",
    ]
    private static let correlatingPrefixes = [
        "x-b3-", "x-datadog-", "x-ot-", "ot-tracer-", "uberctx-", "x-instana-", "x-dynatrace", "x-newrelic-", "amz-sdk-",
    ]

    private static let describing = ["user-agent", "x-user-agent", "x-amz-user-agent", "accept-language", "accept-charset"]

    private static let selecting = [
        // Users.
        "from", "sudo", "x-sudo", "x-act-as", "x-on-behalf-of", "x-client-id", "client-id", "x-client-dn", "x-client-verify",
        // Routes.
        "rsc", "x-api-version", "api-version", "x-github-api-version", "accept-version", "x-app-id", "x-application-id",
        "x-parse-application-id",
        // Views of a page.
        "x-requested-with", "x-turbo", "x-nuxt",
        // Devices and their places.
        "x-akamai-edgescape",
    ]
    private static let selectingPrefixes = [
        "remote-", "x-remote-", "x-auth-", "x-authenticated-", "x-authentik-", "x-webauth-", "x-vouch-", "x-pomerium-", "x-oidc-", "oidc-",
        "oidc_", "x-jwt-", "x-ms-client-principal", "x-ms-token-", "x-goog-authenticated-", "x-goog-iap-", "x-amzn-oidc-", "cf-access-",
        "tailscale-", "shib-", "x-shib-", "x-saml-", "x-hasura-", "x-consumer-", "x-credential-", "ssl-", "ssl_", "x-ssl-", "client-cert",
        "x-client-cert", "x-arr-clientcert", "x-middleware-", "x-invoke-", "x-nextjs-", "x-sveltekit-", "next-router-", "turbo-", "hx-",
        "x-pjax", "x-inertia", "x-livewire", "x-up-", "x-partial", "x-fragment", "x-ajax", "x-mobile", "x-wurfl-", "x-geo", "cf-ip",
        "cloudfront-", "x-appengine-", "x-vercel-",
        // Mercurial's arguments.
        "x-hgarg-", "x-hgproto-",
    ]

    /// Names of fields that browsers and common clients send, and of those that this proxy reads. None has a beginning of
    /// `PlainFields.decidingPrefixes`.
    private static let wellKnown =
        [
            "connection", "accept", "accept-encoding", "cache-control", "pragma", "referer", "origin", "range", "te", "trailer",
            "transfer-encoding", "upgrade", "http2-settings", "keep-alive", "expect", "via", "cdn-loop", "max-forwards", "alt-used",
            "prefer",
            "idempotency-key", "early-data", "date", "warning", "priority", "depth", "destination", "overwrite", "lock-token", "timeout",
            "brief", "git-protocol", "last-event-id", "available-dictionary", "dictionary-id", "dnt", "downlink", "dpr", "ect", "rtt",
            "save-data", "device-memory", "viewport-width", "width", "purpose", "service-worker", "service-worker-navigation-preload",
            "upgrade-insecure-requests", "dpop", "x-amz-date", "x-amz-content-sha256", "req-num", "test-id", "test-name",
        ]
    private static let wellKnownPrefixes = [
        "sec-", "accept-", "want-", "access-control-request-", "if-", "content-", "proxy-", "rockpool-",
    ]

    // MARK: - Words

    private enum Word { case selects, correlates, numbered, id, key, otherKey }

    /// The kind by the words of a name, which hyphens, underscores and dots separate; nil if none of them says it.
    static func byWords(_ name: Span<UInt8>) -> UnkeyedField? {
        var (start, last, selects, isOther) = (0, Word?.none, false, false)
        for index in 0...name.count {
            guard
                index == name.count || name[index] == UInt8(ascii: "-") || name[index] == UInt8(ascii: "_")
                    || name[index] == UInt8(ascii: ".")
            else { continue }
            let word = words.value(of: name.extracting(start..<index))
            if word == .correlates || word == .id && last == .numbered { return .correlates }
            if word == .selects { selects = true }
            if word == .otherKey || word == .numbered { isOther = true }
            (start, last) = (index + 1, word)
        }
        if last == .key, !isOther { return .identifies }
        return selects ? .selects : nil
    }

    private static let words = FieldNameTable(
        [("id", Word.id)] + ["request", "correlation", "trace", "span", "transaction", "req"].map { ($0, .numbered) }
            + ["requestid", "correlationid", "traceid", "spanid", "transactionid", "traceparent", "tracestate"].map { ($0, .correlates) }
            + selectingWords.map { ($0, .selects) } + keyWords.map { ($0, .key) } + otherKeyWords.map { ($0, .otherKey) })
    /// A name that ends in one of these carries a key, but for those with a word that says what else it is a key or a token of.
    static let keyWords = [
        "key", "apikey", "token", "accesstoken", "authtoken", "apitoken", "secret", "password", "passphrase", "credential", "credentials",
        "jwt",
        "auth", "authorization", "bearer",
    ]
    static let otherKeyWords = [
        "csrf", "xsrf", "captcha", "recaptcha", "hcaptcha", "turnstile", "challenge", "nonce", "idempotency", "deduplication", "cache",
        "surrogate",
        "partition", "routing", "shard", "page", "paging", "continuation", "next", "previous", "sync", "cursor", "delta", "change",
        "resume",
        "upload", "encryption", "websocket", "public", "message", "push", "lock", "sort", "primary", "foreign", "once", "otp",
    ]
    static let selectingWords = [
        // Users.
        "user", "users", "userid", "username", "useremail", "uid", "login", "email", "principal", "subject", "identity", "member",
        "memberid",
        "role", "roles", "group", "groups", "impersonate", "impersonated", "impersonation", "actor", "persona", "profile", "profileid",
        "employee", "visitor", "visitorid", "anonymous", "msisdn",
        // Tenants.
        "tenant", "tenants", "tenantid", "account", "accounts", "accountid", "org", "orgid", "organization", "organizationid",
        "organisation", "company", "companyid", "customer", "customerid", "team", "teamid", "workspace", "workspaceid", "project",
        "projectid", "namespace", "realm", "store", "shop", "shopid", "site", "brand", "market",
        // Devices and what they are set to.
        "device", "deviceid", "devices", "imei", "imsi", "country", "region", "locale", "language", "lang", "currency", "timezone",
        // Routes.
        "url", "uri", "baseurl", "path", "host", "hostname", "domain", "route", "router", "routing", "prefix", "scheme", "proto", "port",
        "backend", "upstream", "server", "script", "experiment", "experiments", "variant",
    ]
}

extension HTTPFields {
    /// The names of the fields by which requests select a response, each once, in their order.
    package var selectingNames: [HTTPField.Name] { names(of: [.selects]) }

    /// The names of the fields of these kinds, each once, in their order.
    package func names(of kinds: Set<UnkeyedField>) -> [HTTPField.Name] {
        var names: [HTTPField.Name] = []
        for field in self where kinds.contains(UnkeyedField(field.name)) && !names.contains(field.name) { names.append(field.name) }
        return names
    }
}

// MARK: - Fields that influence a response

/// Classifies the fields of a request that might be answered before it is decoded (RFC 9110, RFC 9111 §5.2.1).
package enum PlainFields {
    enum Role {
        case host, ifNoneMatch, ifModifiedSince, range, decides, none
        /// No decision depends on it: it names one request, or describes the client, or is not known.
        case free
        /// A credential, or a field that selects (`UnkeyedField`).
        case credential
        /// The key of a write. It decides about any other request.
        case key
    }

    /// Every field that the processing after the decoder evaluates in a read, except those that a stored reply is found by: a credential,
    /// `If-None-Match`, `If-Modified-Since`, `Range`, and the fields named by `Vary` of a stored response.
    package static let deciding: [String] =
        [
            "proxy-authorization",
            // cache directives and other conditions
            "cache-control", "pragma", "if-match", "if-unmodified-since", "if-range", "want-content-digest",
            "want-repr-digest", "available-dictionary", "dictionary-id",
            // connection and framing
            "te", "trailer", "transfer-encoding", "upgrade", "http2-settings", "keep-alive", "proxy-authenticate",
            "proxy-authentication-info",
            "content-length", "content-encoding", "content-type", "content-range", "content-location", "expect",
            // forwarding history and limits
            "via", "cdn-loop", "max-forwards", "alt-used",
            // overrides of the method, host or path
            "x-http-method-override", "x-http-method", "x-method-override", "x-host", "x-http-host-override", "x-host-override",
            "x-backend-host", "x-url-scheme", "forwarded", "front-end-https", "x-proxy-url", "x-wap-profile",
            // overrides of the client address
            "x-real-ip", "true-client-ip", "client-ip", "x-client-ip", "x-cluster-client-ip", "x-remote-addr", "x-remote-ip",
            "cf-connecting-ip", "fastly-client-ip",
            // preferences for this exchange
            "prefer", "idempotency-key", "early-data",
        ]
    /// Prefixes of fields defined by this proxy or added by other proxies.
    static let decidingPrefixes = ["rockpool-", "if-", "content-", "sec-websocket-", "proxy-"] + UnkeyedField.overridingPrefixes

    /// The role of a field. `Connection: keep-alive` states the default and has none.
    static func role(of name: Span<UInt8>, value: Span<UInt8>) -> Role {
        switch name.count {
        case 4 where isEqual(name, at: 0, to: host): return .host
        case 10 where isEqual(name, at: 0, to: connection), 16 where isEqual(name, at: 0, to: proxyConnection):
            return value.count == keepAlive.count && isEqual(value, at: 0, to: keepAlive) ? .none : .decides
        case 5 where isEqual(name, at: 0, to: range): return .range
        case 13 where isEqual(name, at: 0, to: ifNoneMatch): return .ifNoneMatch
        case 17 where isEqual(name, at: 0, to: ifModifiedSince): return .ifModifiedSince
        default:
            let role = table.value(of: name) ?? Self.role(of: UnkeyedField.byWords(name))
            return role == .free && isRead(name) ? .none : role
        }
    }

    /// Fields of remote procedure calls.
    static let calls = ["soapaction", "x-amz-target", "connect-protocol-version", "twirp-version"]
    /// Fields of uploads in several requests.
    static let uploads = ["tus-resumable", "upload-complete", "upload-draft-interop-version", "x-goog-upload-protocol"]

    /// True for a name that a decision looks at although nothing is known of its values: those of writes (calls, uploads, `If` of WebDAV,
    /// messages), of signatures, and any with `_`, which frameworks take for another name.
    private static func isRead(_ name: Span<UInt8>) -> Bool {
        for index in name.indices where name[index] == UInt8(ascii: "_") { return true }
        return readTable.value(of: name) != nil
    }

    private static let host = Array("host".utf8)
    private static let connection = Array("connection".utf8)
    private static let proxyConnection = Array("proxy-connection".utf8)
    private static let keepAlive = Array("keep-alive".utf8)
    private static let range = Array("range".utf8)
    private static let ifNoneMatch = Array("if-none-match".utf8)
    private static let ifModifiedSince = Array("if-modified-since".utf8)
    /// A request field that selects is taken for a part of the credential: a stored reply is found by it.
    private static func role(of kind: UnkeyedField?) -> Role {
        switch kind {
        case .selects?, .identifies?: .credential
        case .correlates?, .describes?, .unknown?, nil: .free
        case .known?, .overrides?: .none
        }
    }

    private static let readTable = FieldNameTable(
        (calls + uploads + ["if"]).map { ($0, true) },
        prefixes: ["x-amz-", "x-goog-", "signature", "webhook-"].map { ($0, true) })

    private static let table: FieldNameTable<Role> = {
        let secret = SecretFields.others.filter { name in !decidingPrefixes.contains { name.hasPrefix($0) } }
        let names: [(String, Role)] = deciding.map { ($0, $0 == "idempotency-key" ? .key : .decides) } + secret.map { ($0, .none) }
        let prefixes: [(String, Role)] = decidingPrefixes.map { ($0, .decides) }
        return FieldNameTable(
            names + UnkeyedField.names.map { ($0.0, role(of: $0.1)) },
            prefixes: prefixes + UnkeyedField.prefixes.map { ($0.0, role(of: $0.1)) })
    }()

    /// True if the bytes from `start` on equal `lowercase`, ignoring case. `bytes` must be long enough.
    @inline(__always) static func isEqual(_ bytes: Span<UInt8>, at start: Int, to lowercase: [UInt8]) -> Bool {
        for index in lowercase.indices where FieldByte.lowercased(bytes[start + index]) != lowercase[index] { return false }
        return true
    }

    /// True if the bytes at `range` are `expected`.
    package static func isExactly(_ bytes: Span<UInt8>, at range: Range<Int>, _ expected: [UInt8]) -> Bool {
        guard range.count == expected.count else { return false }
        for index in expected.indices where bytes[range.lowerBound + index] != expected[index] { return false }
        return true
    }
}
