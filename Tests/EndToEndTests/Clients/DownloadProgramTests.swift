// aria2c downloads in parallel ranges, and apt installs from a signed mirror, online and offline (docs/guide/programs.md).
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

/// True if the programs are installed; a test without its program is skipped.
private func has(_ programs: String...) -> Bool {
    programs.allSatisfy { program in
        (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").contains { access("\($0)/\(program)", X_OK) == 0 }
    }
}

@Suite(.timeLimit(.minutes(3)), .serialized) struct DownloadProgramTests {
    @Test(.enabled(if: has("aria2c"), "aria2c is not installed")) func aria2cFetchesEachByteOnce() async throws {
        // aria2c divides into pieces of 1 MiB at least. The site is slower than the loopback, whose buffers would hold most of a piece that
        // aria2c gives up.
        let (size, scratch) = (8_000_000, try Scratch())
        let site = try await RangeSite.start(bytes: size, freshness: "no-cache", pause: .milliseconds(20))
        let server = try await ServerProcess.start(ServerSettings(upstream: site.port))
        let download = { (name: String) in
            let options = ["-q", "--no-conf", "-x4", "-s4", "-k1M", "--file-allocation=none", "-d", scratch.path, "-o", name]
            let run = try await Command.run("/usr/bin/env", ["aria2c"] + options + ["http://\(server.gateway)/file"])
            let bytes = try? Files.bytes(of: scratch.path + "/" + name)
            #expect(run.status == 0 && bytes == site.bytes, "\(name): \(run.status) \(run.output) \(bytes?.count ?? 0) bytes")
        }
        try await download("first")
        #expect(site.sent <= size + size / 50, "\(site.sent) of \(size) bytes fetched")
        _ = try await server.change("PUT", "/v1/network", ["mode": "offline"])
        try await download("offline")
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await site.stop()
    }

    /// Makes a mirror of one package in `repo`, signed by a new key in the file `$1`.
    private static let mirror = """
        set -e
        mkdir -p pearl/DEBIAN repo gpg; chmod 700 gpg
        printf 'Package: pearl\\nVersion: 1.0\\nArchitecture: all\\nMaintainer: a <a@example.com>\\nDescription: low\\n' > pearl/DEBIAN/control
        dpkg-deb --build --root-owner-group pearl repo/pearl_1.0_all.deb > /dev/null
        cd repo
        digest() { sha256sum < $1 | cut -d' ' -f1; }
        { dpkg-deb --field pearl_1.0_all.deb
          printf 'Filename: ./pearl_1.0_all.deb\\nSize: %s\\nSHA256: %s\\n\\n' $(stat -c %s pearl_1.0_all.deb) $(digest pearl_1.0_all.deb)
        } > Packages
        printf 'Date: %s\\nSHA256:\\n %s %s Packages\\n' "$(LC_ALL=C date -Ru)" $(digest Packages) $(stat -c %s Packages) > Release
        gpg --homedir ../gpg --batch --passphrase '' --quick-generate-key a@example.com rsa2048 sign never
        gpg --homedir ../gpg --batch --export > ../key.gpg
        case $1 in
          InRelease) gpg --homedir ../gpg --batch --clearsign --output InRelease Release ;;
          Release.gpg) gpg --homedir ../gpg --batch --armor --detach-sign --output Release.gpg Release ;;
        esac
        gpgconf --homedir ../gpg --kill all
        """

    /// Reads the lists and the package into the empty directory `$1` from the mirror `$2`.
    private static let install = """
        set -e
        mkdir -p $1/state/lists/partial $1/cache/archives/partial; touch $1/state/status
        echo "deb [signed-by=$PWD/key.gpg] $2 ./" > $1/sources.list
        set -- $1 -q -o Dir::State=$PWD/$1/state -o Dir::State::status=$PWD/$1/state/status -o Dir::Cache=$PWD/$1/cache \
          -o Dir::Etc::sourcelist=$PWD/$1/sources.list -o Dir::Etc::sourceparts=- -o APT::Sandbox::User=root -o Debug::NoLocking=1
        home=$1; shift
        apt-get "$@" update
        cd $home; apt-get "$@" download pearl; dpkg-deb --field pearl_1.0_all.deb Description
        """

    /// A mirror without `InRelease` answers 404 for it, also while it is away: then apt goes on with `Release`.
    @Test(.enabled(if: has("apt-get", "dpkg-deb", "gpg"), "apt, dpkg or gpg is not installed"), arguments: ["InRelease", "Release.gpg"])
    func aptReadsASignedMirror(signature: String) async throws {
        let mirror = { (port: Int, directory: String) in
            try FileManager.default.createDirectory(atPath: directory + "/repo", withIntermediateDirectories: true)
            return ["python3", "-m", "http.server", "\(port)", "--bind", "127.0.0.1", "--directory", directory + "/repo"]
        }
        try await ProgramWorld.with(mirror, upstream: [:]) { world in
            let made = try await world.run(["sh", "-c", Self.mirror, "sh", signature])
            try #require(made.status == 0, "\(made.errors)")
            for state in ["auto", "offline"] {
                try await world.turn(state)
                let run = try await world.run(["sh", "-c", Self.install, "sh", "home-\(state)", "http://\(world.server.gateway)/"])
                #expect(run.status == 0 && run.output.hasSuffix("low\n"), "\(state): \(run.output) \(run.errors)")
                #expect(!run.errors.contains("W:") && !run.output.contains("Err:"), "\(state): \(run.output) \(run.errors)")
            }
        }
    }
}
