// The manual page names the commands and options of the program.
import ArgumentParser
import FoundationEssentials
import Testing

@testable import rockpool

@Suite struct ManualPageTests {
    private let page: String

    init() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        page = try String(contentsOf: root.appending(path: "Config/rockpool.1"), encoding: .utf8)
    }

    @Test func everyCommandIsNamed() {
        let names = Rockpool.configuration.subcommands.compactMap { $0.configuration.commandName }
        let listed = page.split(separator: "\n").filter { $0.hasPrefix(".B ") || $0.hasPrefix(".BR ") }.joined(separator: " ")
            .replacing("\\-", with: "-")
        #expect(names.count > 5 && names.filter { !listed.split { " ,".contains($0) }.contains(Substring($0)) } == [])
    }

    @Test(arguments: [
        "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "HOME", "NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_FDNAMES",
        "LISTEN_PID", "SQLITE_TMPDIR", "VISUAL", "EDITOR", "SHELL", "NO_COLOR",
    ])
    func everyVariableIsNamed(_ name: String) throws {
        let section = try #require(page.split(separator: ".SH ENVIRONMENT\n").last?.split(separator: ".SH ").first)
        let named = section.split(separator: "\n").filter { $0.hasPrefix(".B ") }.flatMap { $0.dropFirst(3).split { " ,".contains($0) } }
        #expect(named.contains { $0 == name })
    }

    @Test(arguments: [0, 1, 64, 69, 75, 78] as [Int32]) func everyExitStatusIsNamed(_ status: Int32) {
        #expect(rockpool.ExitStatus(rawValue: status) != nil && page.contains("\(status) "))
    }
}
