// npm and cargo install a package from a registry that is decrypted, online and offline (docs/guide/clients.md#programs).
import Foundation
import RockpoolTesting
import Testing

/// True if a program is installed; a test without its program is skipped.
private func has(_ program: String) -> Bool {
    (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").contains { access("\($0)/\(program)", X_OK) == 0 }
}

@Suite(.timeLimit(.minutes(5)), .serialized) struct PackageTests {
    /// Writes the package `pearl` into the site, for both registries.
    private static let registry = """
        import base64, hashlib, io, json, os, sys, tarfile
        root, url = sys.argv[1:3]
        os.chdir(root)
        def pack(path, files):
            with tarfile.open(path, "w:gz") as tar:
                for name, text in files.items():
                    info = tarfile.TarInfo(name)
                    info.size = len(text)
                    tar.addfile(info, io.BytesIO(text.encode()))
            return open(path, "rb").read()
        about = {"name": "pearl", "version": "1.0.0", "main": "pearl.js"}
        bytes = pack("pearl-1.0.0.tgz", {"package/package.json": json.dumps(about), "package/pearl.js": "module.exports = 'low'"})
        digest = "sha512-" + base64.b64encode(hashlib.sha512(bytes).digest()).decode()
        version = {**about, "dist": {"tarball": url + "/pearl-1.0.0.tgz", "integrity": digest}}
        document = {"name": "pearl", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
        open("pearl", "w").write(json.dumps(document))
        os.makedirs("index/pe/ar")
        manifest = '[package]\\nname = "pearl"\\nversion = "1.0.0"\\nedition = "2021"\\n'
        bytes = pack("pearl-1.0.0.crate", {"pearl-1.0.0/Cargo.toml": manifest, "pearl-1.0.0/src/lib.rs": ""})
        digest = hashlib.sha256(bytes).hexdigest()
        open("index/config.json", "w").write(json.dumps({"dl": url + "/{crate}-{version}.crate", "api": None}))
        crate = {"name": "pearl", "vers": "1.0.0", "deps": [], "cksum": digest, "features": {}, "yanked": False}
        open("index/pe/ar/pearl", "w").write(json.dumps(crate) + "\\n")
        """

    /// Runs a shell command in a new directory, online and offline; both times it must succeed and print `expected`.
    private func installsTwice(
        _ expected: String, _ files: [String: String], environment: [String: String] = [:], _ command: String
    ) async throws {
        try await SecureWorld.with { world in
            let made = try await Command.run("/usr/bin/env", ["python3", "-c", Self.registry, world.site.root.path, world.site.url])
            #expect(made.status == 0, "\(made.errors)")
            for state in ["online", "offline"] {
                let home = try Scratch()
                for (name, text) in files {
                    let directory = home.path + "/" + name.split(separator: "/").dropLast().joined(separator: "/")
                    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
                    try home.write(text.replacing("URL", with: world.site.url), to: name)
                }
                let run = try await world.run(
                    ["/bin/sh", "-c", command.replacing("URL", with: world.site.url)], home: home, environment: environment)
                #expect(run.status == 0 && run.output.contains(expected), "\(state): \(run.status) \(run.output) \(run.errors)")
                if state == "online" { try await world.site.stop() }
            }
        }
    }

    @Test(.enabled(if: has("npm"), "npm is not installed")) func npm() async throws {
        try await installsTwice(
            "low", ["package.json": #"{"name":"pool","version":"1.0.0"}"#],
            "npm install pearl --registry URL/ --no-audit --no-fund --no-update-notifier && node -p \"require('pearl')\"")
    }

    @Test(.enabled(if: has("cargo"), "cargo is not installed")) func cargo() async throws {
        let manifest = """
            [package]
            name = "pool"
            version = "0.1.0"
            edition = "2021"
            [dependencies]
            pearl = { version = "1.0.0", registry = "pool" }

            """
        // The programs of rustup find their toolchain below the home directory of the user.
        let home = ProcessInfo.processInfo.environment["HOME"] ?? ""
        let toolchains = ProcessInfo.processInfo.environment["RUSTUP_HOME"] ?? home + "/.rustup"
        try await installsTwice(
            "pearl-1.0.0.crate",
            [
                "Cargo.toml": manifest, "src/lib.rs": "",
                ".cargo/config.toml": "[registries.pool]\nindex = \"sparse+URL/index/\"\n",
            ], environment: ["RUSTUP_HOME": toolchains], "cargo fetch && ls .cargo/registry/cache/*")
    }
}
