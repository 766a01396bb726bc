// Network values: listeners, networks, origins, parent proxies, field names (RFC 9110, RFC 3986 §3.2, RFC 4632).
import RockpoolCore

extension ScalarFormat where Value == String {
    /// `host:port` of a listener; port 0 takes a free port.
    static let listener = text("an address such as 127.0.0.1:7625 or [::1]:7625") { text in
        guard let address = HostAndPort(text) else { return false }
        return (0...65535).contains(address.port)
    }

    /// A network in CIDR notation, or a single address.
    static let network = text("a network such as 10.0.0.0/8") { CIDR($0) != nil }

    /// A host name or address, without a port.
    static let host = text("a host name") { text in
        !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"/?#@[]\"\\".utf8.contains($0) }
    }

    /// A host name as it is in `Host`: lower case, without a port.
    static let lowerHost = text("a host name in lower case, without a port") { text in
        (try? Authority.parse(Substring(text))).map { $0.host == text && $0.port == nil } == true
    }

    /// Whole segments at the beginning of paths.
    static let pathPrefix = text("the beginning of a path, such as /notes, without a slash at its end") { isPathPrefix($0) }

    fileprivate static func isPathPrefix(_ text: String) -> Bool {
        text.hasPrefix("/") && text.count > 1 && !text.hasSuffix("/") && !text.contains("//") && !text.hasPrefix("/.well-known/rockpool")
            && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"?#%\"<>\\".utf8.contains($0) }
    }

    /// A host, or all names below one, with an optional port.
    static let hostPattern = text("a host such as api.example.com, *.example.com or api.example.com:8443") { HostPattern($0) != nil }

    /// The hosts of a rule for parent proxies.
    static let parentHosts = text("a host such as api.example.com or *.example.com, a network such as 10.0.0.0/8, or *") {
        ParentPattern($0) != nil
    }

    /// A parent proxy.
    static let parentProxy = text("a proxy such as http://host:3128 or socks5h://host:1080") { isParent($0) }

    /// A parent proxy, or the word for none.
    static let parentProxyOrDirect = text("direct, or a proxy such as http://host:3128 or socks5h://host:1080") {
        $0 == ParentRule.direct || isParent($0)
    }

    /// The proxy listener of a gateway.
    static let gatewayProxy = text("the proxy listener of a gateway such as http://shop-2:7625") { text in
        text.hasPrefix("http") && isParent(text) && text == text.lowercased()
    }

    private static func isParent(_ text: String) -> Bool {
        ["http://", "https://", "socks5://", "socks5h://"].contains { scheme in
            guard text.hasPrefix(scheme), let address = HostAndPort(String(text.dropFirst(scheme.count))) else { return false }
            return (1...65535).contains(address.port)
        }
    }

    /// A name for a parent proxy; Basic separates it from the password by a colon (RFC 7617 §2).
    static let proxyUser = text("a name without a colon") { text in
        !text.isEmpty && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: ":") }
    }

    /// An unsafe method; GET, HEAD and other safe methods are never queued.
    static let unsafeMethod = text("a method that writes, such as POST") { text in
        text.isToken && text == text.uppercased() && !["GET", "HEAD", "OPTIONS", "TRACE", "CONNECT", "QUERY"].contains(text)
    }

    /// The name of a header field.
    static let fieldName = text("the name of a header field") { $0.isToken }

    /// The URL of a receiver of messages.
    static let webhookURL = text("a URL such as https://hooks.example.com/rockpool") { (try? RequestHead(url: $0)) != nil }

    /// A collector of traces.
    static let collector = text("a collector such as otlp://127.0.0.1:4318, or the http or https URL of one") {
        TracingSettings(url: $0).endpoint != nil
    }

    static let tlsVersion = words(["1.2", "1.3"])
}

extension ScalarFormat where Value == OriginAddress {
    static let origin = ScalarFormat("an origin such as https://api.example.com, without a path", show: { .text($0.url) }) { text in
        guard let separator = text.firstRange(of: "://"), let scheme = OriginAddress.Scheme(rawValue: String(text[..<separator.lowerBound]))
        else { return nil }
        var authority = text[separator.upperBound...]
        if authority.hasSuffix("/") { authority.removeLast() }
        guard let address = HostAndPort(String(authority), defaultPort: scheme.defaultPort), (1...65535).contains(address.port) else {
            return nil
        }
        return OriginAddress(scheme: scheme, host: address.host, port: address.port)
    }
}

extension ScalarFormat where Value == OriginBase {
    static let originBase = ScalarFormat(
        "an origin such as https://api.example.com, or one with a path", show: { .text($0.origin.url + $0.path) }, meant: meant(by:),
        parse: base(of:))

    private static func base(of text: String) -> OriginBase? {
        guard let separator = text.firstRange(of: "://") else { return nil }
        let authority = text[separator.upperBound...].prefix { $0 != "/" }
        var path = String(text[authority.endIndex...])
        if path.hasSuffix("/") { path.removeLast() }
        guard path.isEmpty || ScalarFormat<String>.isPathPrefix(path) && !path.pathHasDotSegment,
            let origin = try? ScalarFormat<OriginAddress>.origin.parse(String(text[..<authority.endIndex]))
        else { return nil }
        return OriginBase(origin: origin, path: path)
    }

    /// The URL that a text with a mistyped scheme, or a host without one, may have meant.
    private static func meant(by text: String) -> String? {
        let rest: Substring
        let scheme: String?
        if let parts = text.wholeMatch(of: /([A-Za-z]+)(:\/+|\/\/+)(.*)/) {
            rest = parts.3
            let nearest = Nearest.to(String(parts.1), of: ["http", "https"])
            scheme = nearest.flatMap { Nearest.distance(from: String(parts.1), to: $0) <= 1 ? $0 : nil }
        } else {
            rest = text[...]
            let host = text.prefix { $0 != ":" && $0 != "/" }
            scheme = text.contains { ".:".contains($0) } ? OriginAddress.isLoopback(String(host)) ? "http" : "https" : nil
        }
        return scheme.map { "\($0)://\(rest)" }.flatMap { base(of: $0) == nil ? nil : $0 }
    }
}

extension String {
    fileprivate var pathHasDotSegment: Bool { split(separator: "/").contains { $0 == "." || $0 == ".." } }
}

extension ScalarFormat where Value == IdentityRule {
    static let identity = ScalarFormat("auto, single, header:NAME or cookie:NAME", show: { .text($0.text) }) { text in
        let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
        switch (parts.first, parts.count) {
        case ("auto", 1): return .auto
        case ("single", 1): return .single
        case ("header", 2) where parts[1].isToken: return .header(parts[1])
        case ("cookie", 2) where parts[1].isToken: return .cookie(parts[1])
        default: return nil
        }
    }
}

extension IdentityRule {
    fileprivate var text: String {
        switch self {
        case .auto: "auto"
        case .single: "single"
        case .header(let name): "header:\(name)"
        case .cookie(let name): "cookie:\(name)"
        }
    }
}
