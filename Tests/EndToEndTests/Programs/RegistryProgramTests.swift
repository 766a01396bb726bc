// skopeo pulls from a real registry through a gateway, and again while the registry is stopped.
import Foundation
import RockpoolCore
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(3))) struct RegistryProgramTests {
    private static let isInstalled = ["/usr/bin/skopeo", "/usr/bin/docker-registry"].allSatisfy {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    /// Writes an image of one layer in the layout that skopeo reads.
    private func makeImage(in directory: String) throws {
        let write = { (text: String, type: String) throws -> JSONValue in
            let digest = CacheStore.digest(of: text.utf8)
            try Files.write(Array(text.utf8), to: "\(directory)/blobs/sha256/\(digest)")
            return ["mediaType": .string(type), "digest": .string("sha256:" + digest), "size": .number(JSONNumber(Int64(text.utf8.count)))]
        }
        try FileManager.default.createDirectory(atPath: directory + "/blobs/sha256", withIntermediateDirectories: true)
        // An archive without a file: two blocks of zeros.
        let layer = String(repeating: "\0", count: 10_240)
        let prefix = "application/vnd.oci.image."
        let layerEntry = try write(layer, prefix + "layer.v1.tar")
        let configuration =
            #"{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":["\#(layerEntry["digest"]?.string ?? "")"]}}"#
        let configurationEntry = try write(configuration, prefix + "config.v1+json")
        let manifest: JSONValue = [
            "schemaVersion": 2, "mediaType": .string(prefix + "manifest.v1+json"), "config": configurationEntry, "layers": [layerEntry],
        ]
        var entry = try write(String(decoding: manifest.serialized(), as: UTF8.self), prefix + "manifest.v1+json")
        entry = entry.merging(["annotations": ["org.opencontainers.image.ref.name": "latest"]])
        let index: JSONValue = ["schemaVersion": 2, "manifests": [entry]]
        try Files.write(index.serialized(), to: directory + "/index.json")
        try Files.write(Array(#"{"imageLayoutVersion":"1.0.0"}"#.utf8), to: directory + "/oci-layout")
    }

    private func skopeo(_ arguments: [String], in scratch: Scratch) async throws -> Command {
        let home = scratch.path + "/home-\(arguments.last?.split(separator: ":").last ?? "")"
        return try await Command.run(
            "/usr/bin/skopeo", ["--insecure-policy", "--tmpdir", scratch.path] + arguments,
            environment: ["HOME": home, "XDG_RUNTIME_DIR": scratch.path], directory: scratch.path, within: .seconds(60))
    }

    @Test(.enabled(if: Self.isInstalled, "skopeo or docker-registry is not installed"), arguments: [false, true])
    func whatWasPulledIsThereWhenTheRegistryIsStopped(hasPassword: Bool) async throws {
        let (scratch, port) = (try Scratch(), FreePort.next())
        try makeImage(in: scratch.path + "/image")
        // `ada`, `low-water`.
        let users = "ada:$2y$05$6TtMUdlAjbiu0nm92.iFTub7LanEyOJYyc1OgtcMFVG9AAinn2OsC\n"
        let file = try scratch.write(users, to: "users")
        let auth = hasPassword ? "auth: { htpasswd: { realm: pool, path: \(file) } }\n" : ""
        let settings = try scratch.write(
            "version: 0.1\nlog: { level: error }\nstorage: { filesystem: { rootdirectory: \(scratch.path)/data } }\n"
                + "http: { addr: '127.0.0.1:\(port)' }\n\(auth)", to: "registry.yml")
        let program = try await ChildProcess("/usr/bin/docker-registry", ["serve", settings])
        try await eventually("a registry") { [200, 401].contains(try await Curl.send("GET", "http://127.0.0.1:\(port)/v2/").status) }
        let server = try await ServerProcess.start(ServerSettings(upstream: port, ["routes": [["match": "/**", "kind": "oci"]]]))
        let credentials = { (side: String) in hasPassword ? ["--\(side)-creds", "ada:low-water"] : [] }
        let push = try await skopeo(
            ["copy"] + credentials("dest") + ["--dest-tls-verify=false", "oci:image:latest", "docker://127.0.0.1:\(port)/pool/app:latest"],
            in: scratch)
        try #require(push.status == 0, "\(push.errors)")
        let source = "docker://\(server.gateway)/pool/app:latest"
        let pull = { (name: String) in
            try await skopeo(["copy"] + credentials("src") + ["--src-tls-verify=false", source, "dir:" + name], in: scratch)
        }
        let online = try await pull("online")
        try #require(online.status == 0, "\(online.errors)")
        try await eventually("the content is stored") {
            try await server.get("/v1/cache?prefix=http://127.0.0.1:\(port)/v2/pool/app/blobs/").json?["items"]?.array?.count ?? 0 >= 2
        }
        program.signal(SIGKILL)
        _ = try await program.ending()
        let away = try await pull("away")
        #expect(away.status == 0, "\(away.errors)")
        let names = try FileManager.default.contentsOfDirectory(atPath: scratch.path + "/online").sorted()
        #expect(names.count == 4)
        for name in names {
            try #expect(Files.bytes(of: scratch.path + "/online/" + name) == Files.bytes(of: scratch.path + "/away/" + name), "\(name)")
        }
        let again = try await skopeo(
            ["copy"] + credentials("dest") + [
                "--dest-tls-verify=false", "oci:image:latest", "docker://\(server.gateway)/pool/other:latest",
            ],
            in: scratch)
        #expect(again.status != 0)
        if hasPassword {
            let stranger = try await skopeo(
                ["copy", "--src-creds", "ada:high-water", "--src-tls-verify=false", source, "dir:stranger"], in: scratch)
            #expect(stranger.status != 0)
        }
        try await #expect(server.operations().isEmpty)
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }
}
