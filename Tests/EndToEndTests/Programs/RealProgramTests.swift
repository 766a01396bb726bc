// Programs that were not written here, each online, while its server is away, and afterwards: the scenes of Tests/programs/run.
import Foundation
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(4))) struct RealProgramTests {
    private static let folder = URL(filePath: #filePath).appending(path: "../../../programs").standardized.path

    /// The names of the scenes whose programs are installed; of the larger programs only for `make programs`, which sets ROCKPOOL_PYTHON.
    private static let scenes: [String] = {
        let (process, output) = (Process(), Pipe())
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        let isWhole = ProcessInfo.processInfo.environment["ROCKPOOL_PYTHON"] != nil
        process.arguments = ["python3", folder + "/run", "--list"] + (isWhole ? [] : ["--usual"])
        process.standardOutput = output
        guard (try? process.run()) != nil else { return [] }
        let names = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: names, as: UTF8.self).split(separator: "\n").map(String.init)
    }()

    /// `Tests/programs/run --table` makes the table.
    @Test func theGuideHasTheTable() async throws {
        let made = try await Command.run("/usr/bin/env", ["python3", Self.folder + "/run", "--table"])
        #expect(made.status == 0, "\(made.errors)")
        let guide = try Files.text(of: Self.folder + "/../../docs/guide/programs.md")
        #expect(guide.contains("\n" + made.output), "docs/guide/programs.md has not the table of Tests/programs/run --table")
    }

    @Test(arguments: Self.scenes) func worksOnlineAwayAndBack(_ scene: String) async throws {
        let run = try await Command.run(
            "/usr/bin/env", ["python3", Self.folder + "/run", scene], environment: ["ROCKPOOL_BINARY": Binary.path], within: .seconds(200))
        #expect(run.status == 0, "\(run.output) \(run.errors)")
    }
}
