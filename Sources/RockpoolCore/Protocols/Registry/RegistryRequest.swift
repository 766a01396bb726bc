// The requests of container clients to a registry, by what they ask for (https://github.com/opencontainers/distribution-spec/blob/main/spec.md;
// https://distribution.github.io/distribution/spec/auth/token).
import HTTPTypes

/// A request on a route with `kind: oci`.
package enum RegistryRequest: Hashable, Sendable {
    /// Whether the registry is there, and how it asks for credentials.
    case base
    /// A blob or a manifest by its digest: its bytes never change.
    case content(repository: String)
    /// A manifest by its tag.
    case tag(repository: String)
    /// The tags of a repository, or what refers to a manifest.
    case listing(repository: String)
    /// A token for some scopes.
    case token
    /// The state of an upload.
    case upload
    /// Anything else, such as the catalogue.
    case other

    package init(_ request: RequestHead) {
        let segments = request.path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        guard segments.first == "v2" else {
            self = Self.asksForToken(request) ? .token : .other
            return
        }
        let path = segments.dropFirst()
        if path.isEmpty || path.count == 1 && path.first == "" {
            self = .base
        } else if zip(path, path.dropFirst()).contains(where: { $0 == "blobs" && $1 == "uploads" }) {
            self = .upload
        } else if let found = Self.inRepository(Array(path)) {
            self = found
        } else {
            self = Self.asksForToken(request) ? .token : .other
        }
    }

    private static func inRepository(_ path: [Substring]) -> RegistryRequest? {
        guard path.count >= 3, path.dropLast(2).allSatisfy(isPartOfName), let last = path.last else { return nil }
        let repository = path.dropLast(2).joined(separator: "/")
        switch path[path.count - 2] {
        case "blobs": return BodyDigests.Digest(named: last) == nil ? nil : .content(repository: repository)
        case "manifests":
            if BodyDigests.Digest(named: last) != nil { return .content(repository: repository) }
            return isTag(last) ? .tag(repository: repository) : nil
        case "tags": return last == "list" ? .listing(repository: repository) : nil
        case "referrers": return BodyDigests.Digest(named: last) == nil ? nil : .listing(repository: repository)
        default: return nil
        }
    }

    /// True for a component of a repository's name: nothing in it has another spelling.
    private static func isPartOfName(_ segment: Substring) -> Bool {
        guard let first = segment.utf8.first, first.isAlphanumeric else { return false }
        return segment.utf8.allSatisfy {
            $0.isAlphanumeric || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-")
        }
    }

    private static func isTag(_ text: Substring) -> Bool {
        guard let first = text.utf8.first, first.isAlphanumeric || first == UInt8(ascii: "_"), text.utf8.count <= 128 else { return false }
        return text.utf8.allSatisfy { $0.isAlphanumeric || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-") }
    }

    private static func asksForToken(_ request: RequestHead) -> Bool {
        if request.method == .post { return MediaType.essence(of: request.fields) == "application/x-www-form-urlencoded" }
        guard request.method == .get, let query = request.query else { return false }
        return query.split(separator: "&").contains { $0.hasPrefix("scope=") || $0.hasPrefix("service=") }
    }

    /// The repository that it is about; nil if it is about none.
    package var repository: String? {
        switch self {
        case .content(let repository), .tag(let repository), .listing(let repository): repository
        case .base, .token, .upload, .other: nil
        }
    }

    /// True for a manifest that is asked for by its tag.
    package var isTag: Bool { if case .tag = self { true } else { false } }

    /// True for a list of tags or of what refers to a manifest.
    package var isListing: Bool { if case .listing = self { true } else { false } }

    /// What has a digest never changes; anything else is asked for anew while the registry is there.
    package var strategy: Strategy {
        switch self {
        case .content: .cacheFirst
        case .base, .tag, .listing, .other: .networkFirst
        case .token, .upload: .networkOnly
        }
    }

    /// What its client is told where the registry cannot be reached.
    package static func refusal(of request: RequestHead) -> String {
        let host = request.origin.hostAndPort
        if RegistryRequest(request) == .token { return "\(host) cannot be reached, and gave this client no token before." }
        if request.method.isSafe { return "\(host) cannot be reached, and this was not pulled before." }
        return "\(host) cannot be reached: nothing was pushed or deleted. Do it again when it is back."
    }
}

extension BodyDigests.Digest {
    /// Reads `sha256:…`, as registries name content; nil for another algorithm, and for what is no digest.
    package init?(named text: Substring) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let known: (BodyDigests.Algorithm, Int)? =
            switch parts[0] {
            case "sha256": (.sha256, 32)
            case "sha512": (.sha512, 64)
            default: nil
            }
        // Upper case would be another spelling of the same digest.
        guard let (algorithm, length) = known, parts[1].utf8.count == 2 * length,
            parts[1].utf8.allSatisfy({ $0.isHexDigit && !($0 >= UInt8(ascii: "A") && $0 <= UInt8(ascii: "F")) })
        else { return nil }
        let digits = parts[1].utf8.compactMap(FormEncoding.digit)
        self.init(algorithm: algorithm, bytes: stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] })
    }
}

extension CacheKey {
    /// The digest that the content of a copy has, if its URL names one: of a registry's blob or manifest.
    package var contentDigest: BodyDigests.Digest? {
        guard partition == .registry, target.hasPrefix("/v2/") else { return nil }
        let segments = target.prefix { $0 != "?" }.split(separator: "/")
        guard let name = segments.last, let kind = segments.dropLast().last, kind == "blobs" || kind == "manifests" else { return nil }
        return BodyDigests.Digest(named: name)
    }
}
