// A registry with one image, whose blobs need a token, and a client of it.
import Foundation
import RockpoolCore
import RockpoolStore
import RockpoolTesting
import Synchronization
import Testing

/// The script of a registry: `ada` and `eve` may pull `pool/app`, `bob` gets tokens that open nothing, everybody may pull `pool/open`.
final class PlayedRegistry: Sendable {
    let layer: String
    /// Where blobs are instead of here; empty: here.
    private let elsewhere: String
    private let issued = Atomic<Int>(0)
    private let refused = Mutex<Set<String>>([])

    /// - Parameter layer: the content of the layer, in place of what its digest says.
    init(layer: String = String(repeating: "low water ", count: 40_000), elsewhere: String = "") {
        (self.layer, self.elsewhere) = (layer, elsewhere)
    }

    static func digest(of text: String) -> String { "sha256:" + CacheStore.digest(of: text.utf8) }

    var layerDigest: String { Self.digest(of: layer) }
    var manifest: String {
        #"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","layers":[{"digest":"\#(layerDigest)"}]}"#
    }
    var manifestDigest: String { Self.digest(of: manifest) }

    /// No token of this client opens anything from now on.
    func refuse(_ user: String) { refused.withLock { _ = $0.insert(user) } }

    func answer(_ asked: PlayedSite.Asked) -> PlayedSite.Said {
        let host = asked["host"] ?? ""
        if asked.path.hasPrefix("/token") { return token(for: asked) }
        guard asked.path.hasPrefix("/v2/") else { return .text("", status: 404) }
        let token = asked["authorization"].map { String($0.dropFirst("Bearer ".count)) } ?? ""
        let user = token.split(separator: "-").dropFirst().first.map { String($0) }
        let isOpen = asked.path.hasPrefix("/v2/pool/open/") && user != nil
        let isRefused = user.map { user in refused.withLock { $0.contains(user) } } ?? true
        let mayPull = isOpen || (user == "ada" || user == "eve") && !isRefused
        guard asked.path == "/v2/" ? user != nil : mayPull else {
            let error = user == nil ? "" : #",error="insufficient_scope""#
            return .text(
                #"{"errors":[{"code":"UNAUTHORIZED"}]}"#, status: 401,
                #"WWW-Authenticate: Bearer realm="http://\#(host)/token",service="reg"\#(error)"#, "Content-Type: application/json")
        }
        return content(asked)
    }

    private func content(_ asked: PlayedSite.Asked) -> PlayedSite.Said {
        let name = asked.path.split(separator: "/").last.map { String($0) } ?? ""
        if asked.method == "POST" { return .text("", status: 202, "Location: /v2/pool/app/blobs/uploads/1") }
        switch name {
        case "latest", manifestDigest:
            return .text(
                manifest, "Content-Type: application/vnd.oci.image.manifest.v1+json", "Docker-Content-Digest: \(manifestDigest)",
                "ETag: \"\(manifestDigest)\"", "Cache-Control: public")
        case layerDigest where !elsewhere.isEmpty:
            return .text("", status: 307, "Location: \(elsewhere)/blob?Signature=\(issued.wrappingAdd(1, ordering: .relaxed).newValue)")
        case layerDigest:
            return .text(
                layer, "Content-Type: application/octet-stream", "Docker-Content-Digest: \(layerDigest)",
                "Cache-Control: public, max-age=60")
        case "list": return .text(#"{"name":"pool/app","tags":["latest"]}"#, "Content-Type: application/json")
        case "v2": return .text("{}", "Content-Type: application/json", "Docker-Distribution-Api-Version: registry/2.0")
        default: return .text(#"{"errors":[{"code":"UNKNOWN"}]}"#, status: 404, "Content-Type: application/json")
        }
    }

    private func token(for asked: PlayedSite.Asked) -> PlayedSite.Said {
        let number = issued.wrappingAdd(1, ordering: .relaxed).newValue
        let named = asked["authorization"].flatMap { Data(base64Encoded: String($0.dropFirst("Basic ".count))) }
        let words = named.map { String(decoding: $0, as: UTF8.self) }?.split(separator: ":").map { String($0) }
        guard words == nil || words?.last == "word-of-\(words?.first ?? "")" else { return .text("{}", status: 401) }
        let token = "secret-\(words?.first ?? "nobody")-\(number)"
        return .text(#"{"token":"\#(token)","expires_in":300,"issued_at":"2026-01-01T00:00:00Z"}"#, "Content-Type: application/json")
    }
}

/// A client with a name, or without one.
struct RegistryPull {
    let world: PlayedWorld
    let user: String?

    init(_ world: PlayedWorld, _ user: String?) { (self.world, self.user) = (world, user) }

    /// The answer to a question for a token, as the challenge of the registry says; nil without a challenge.
    func askForToken(_ repository: String = "pool/app", actions: String = "pull") async throws -> Curl? {
        let base = try await world.get("/v2/")
        guard base.status == 401, let challenge = base["www-authenticate"], let start = challenge.firstRange(of: "realm=\"") else {
            return nil
        }
        let realm = challenge[start.upperBound...].prefix { $0 != "\"" }
        let fields = user.map { ["Authorization: Basic " + Data("\($0):word-of-\($0)".utf8).base64EncodedString()] } ?? []
        return try await Curl.send("GET", "\(realm)?service=reg&scope=repository:\(repository):\(actions)", fields: fields)
    }

    func token(_ repository: String = "pool/app") async throws -> String? {
        let answer = try await askForToken(repository)
        return answer?.status == 200 ? answer?.json?["token"]?.string : nil
    }

    /// The status of the first answer that is not 200, or the layer.
    func pull(_ registry: PlayedRegistry, _ repository: String = "pool/app", token given: String? = nil) async throws -> (Int, String) {
        let own = try await token(repository)
        guard let token = given ?? own else { return (0, "no token") }
        let fields = ["Authorization: Bearer " + token, "Accept: application/vnd.oci.image.manifest.v1+json"]
        for path in ["manifests/latest", "manifests/" + registry.manifestDigest] {
            let manifest = try await world.get("/v2/\(repository)/" + path, fields)
            guard manifest.status == 200 else { return (manifest.status, manifest.text) }
            #expect(manifest.text == registry.manifest && manifest["docker-content-digest"] == registry.manifestDigest)
        }
        let blob = try await world.get("/v2/\(repository)/blobs/" + registry.layerDigest, fields)
        return (blob.status, blob.text)
    }
}
