// `rockpool version`: the version of the program and of what it stores (docs/reference/cli.md#version).
import ArgumentParser
import CCurl
import Foundation
import RockpoolStore

struct VersionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "version", abstract: "Print the version; with --json also those of the databases and of libcurl.",
        discussion: .examples(
            "rockpool version --json"))
    @Flag(name: .long, help: "One JSON object.") var json = false

    func run() throws {
        guard json else { return Display.output.print("rockpool \(Version.number)") }
        #if arch(x86_64)
        let machine = "x86_64"
        #elseif arch(arm64)
        let machine = "arm64"
        #else
        let machine = "other"
        #endif
        let document = ConfigDocument.map([
            .init("version", .text(Version.number)),
            .init("dataSchema", .int(StoreSchemas.data)),
            .init("cacheSchema", .int(StoreSchemas.cache)),
            .init("libcurl", .text(String(cString: curl_version()))),
            .init("machine", .text(machine)),
        ])
        Display.output.print(document.json())
    }
}
