// README's quick start, to the letter (README.md). `make package-test` does the same with the service of the package.
import Foundation
import RockpoolTesting
import Testing

@Suite struct QuickStartTests {
    /// The lines of the section, and the server that it names for a machine without the service.
    private static func script() throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try Files.text(of: root.appending(path: "README.md").path)
        let section = try #require(page.components(separatedBy: "## Quick start").dropFirst().first?.components(separatedBy: "\n## ").first)
        let lines = section.split(separator: "\n").filter { $0.hasPrefix("    ") }.map { $0.drop { $0 == " " } }
        #expect(section.contains("`rockpool serve &`"))
        return lines.flatMap { $0.contains("rockpool add ") ? [$0, "rockpool serve &", "sleep 2"] : [$0] }.joined(separator: "\n")
    }

    @Test func everyStepDoesWhatItSays() async throws {
        let scratch = try Scratch()
        try FileManager.default.createDirectory(atPath: scratch.path + "/bin", withIntermediateDirectories: true)
        try scratch.write("#!/bin/sh\nexec \"\(Binary.path)\" \"$@\"\n", to: "bin/rockpool")
        _ = try scratch.write("#!/bin/sh\nexec \"$@\"\n", to: "bin/sudo")
        for program in ["rockpool", "sudo"] {
            try Files.setMode(0o755, of: "\(scratch.path)/bin/\(program)")
        }
        let lines = try Self.script() + "\nkill $(jobs -p)\n"
        try scratch.write(lines, to: "script")
        // The ports of the page are taken in a network of its own, where the machine allows one.
        let own =
            #"if unshare --net true 2>/dev/null; then exec unshare --net sh -c 'ip link set lo up; exec bash -e script'; fi; exec bash -e script"#
        let result = try await Command.run(
            "/bin/bash", ["-c", own],
            environment: [
                "HOME": scratch.path, "PATH": "\(scratch.path)/bin:/usr/sbin:/usr/bin:/sbin:/bin", "XDG_RUNTIME_DIR": "",
                "XDG_CONFIG_HOME": "",
                "XDG_STATE_HOME": "", "XDG_CACHE_HOME": "",
            ], directory: scratch.path, within: .seconds(60))
        let shown = "\(result.output)\(result.errors)"
        #expect(result.status == 0, "\(shown)")
        for words in [#""title":"Low tide""#, "detail=offline", "Rockpool-State: pending", "delivered"] {
            #expect(result.output.contains(words), "README does not show \(words): \(shown)")
        }
    }
}
