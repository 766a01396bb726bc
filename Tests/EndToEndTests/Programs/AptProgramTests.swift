// apt reads and installs what it has read before while its mirror is away.
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(3))) struct AptProgramTests {
    private static let programs = ["/usr/bin/apt-get", "/usr/bin/dpkg-deb", "/usr/bin/dpkg-scanpackages", "/usr/bin/python3"]
    private static let isInstalled = programs.allSatisfy { FileManager.default.isExecutableFile(atPath: $0) }

    /// Makes a mirror with one package below the directory: lists under their own names and by their hash.
    private static let mirror = """
        set -e; umask 022
        mkdir -p pkg/DEBIAN mirror/pool mirror/dists/stable/main/binary-amd64/by-hash/SHA256
        printf 'Package: pearl\\nVersion: 1.0\\nArchitecture: all\\nMaintainer: a <a@example.com>\\nDescription: pearl\\n' > pkg/DEBIAN/control
        dpkg-deb -b pkg mirror/pool/pearl_1.0_all.deb
        cd mirror; lists=main/binary-amd64
        dpkg-scanpackages pool /dev/null > dists/stable/$lists/Packages
        cd dists/stable; gzip -k $lists/Packages
        for f in $lists/Packages $lists/Packages.gz; do cp $f $lists/by-hash/SHA256/$(sha256sum $f | cut -d' ' -f1); done
        { echo "Origin: t"; echo "Suite: stable"; echo "Codename: stable"; echo "Date: $(date -Ru | sed 's/+0000/UTC/')"
          echo "Architectures: amd64 all"; echo "Components: main"; echo "Acquire-By-Hash: yes"; echo "SHA256:"
          for f in $lists/Packages $lists/Packages.gz; do echo " $(sha256sum $f | cut -d' ' -f1) $(stat -c%s $f) $f"; done; } > Release
        """

    /// Runs apt with directories of its own.
    private func apt(_ arguments: String, root: String, world: ProgramWorld) async throws -> Command {
        let script = """
            set -e; d=$PWD/\(root)
            mkdir -p $d/etc/apt/apt.conf.d $d/etc/apt/preferences.d $d/etc/apt/trusted.gpg.d $d/var/lib/apt/lists/partial \
                $d/var/cache/apt/archives/partial $d/var/lib/dpkg
            touch $d/var/lib/dpkg/status
            echo "deb [trusted=yes arch=amd64] http://\(world.server.gateway) stable main" > $d/etc/apt/sources.list
            cd $d
            apt-get -o Dir=$d -o Dir::State::status=$d/var/lib/dpkg/status -o APT::Sandbox::User=root -o APT::Architecture=amd64 \
                -o Acquire::Retries=0 \(arguments)
            """
        return try await world.run(["env", "-u", "APT_CONFIG", "-u", "http_proxy", "bash", "-c", script])
    }

    @Test(.enabled(if: Self.isInstalled, "apt or dpkg-dev is not installed")) func whatWasReadIsThereWhileTheMirrorIsAway() async throws {
        let serve = { (port: Int, directory: String) in
            ["bash", "-c", "cd \(directory) && mkdir -p mirror && exec python3 -m http.server \(port) --bind 127.0.0.1 -d mirror"]
        }
        try await ProgramWorld.with(serve, upstream: [:]) { world in
            let made = try await world.run(["bash", "-c", Self.mirror])
            try #require(made.status == 0, "\(made.errors)")
            for step in ["update", "download pearl"] {
                let run = try await apt(step, root: "one", world: world)
                #expect(run.status == 0 && !run.errors.contains("W:"), "\(run.output)\(run.errors)")
            }
            try await world.turn("offline")
            // The same machine asks whether its lists are current; another one, or a new container, reads them anew.
            for root in ["one", "two"] {
                let update = try await apt("update", root: root, world: world)
                #expect(update.status == 0 && !update.errors.contains("W:"), "\(root): \(update.output)\(update.errors)")
                let run = try await apt("-y install --download-only pearl", root: root, world: world)
                #expect(run.status == 0, "\(root): \(run.output)\(run.errors)")
                let archive = world.scratch.path + "/" + root + "/var/cache/apt/archives/pearl_1.0_all.deb"
                #expect(FileManager.default.fileExists(atPath: archive))
            }
        }
    }
}
