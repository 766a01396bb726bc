// `rockpool docs`: the documentation that came with the program (docs/reference/cli.md#docs).
import ArgumentParser
import CCurl
import Foundation
import RockpoolAdmin
import RockpoolStore

struct DocsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "docs", abstract: "List the pages of the documentation, or show one.",
        discussion: .examples(
            "rockpool docs",
            "rockpool docs guide/operating",
            "rockpool docs configuration",
            after: "The dashboard shows them too, at Help."))
    @Argument(help: "The page, or the end of its name.") var page: String?
    @Flag(name: .long, help: "Print the folder of the pages.") var path = false

    func run() throws {
        guard let pages = DocumentationPages.installed else {
            throw CommandFailure(.failed, "no documentation is installed with this program; it is in docs/ of the source")
        }
        if path { return Display.output.print(pages.directory.inOneLine) }
        let all = pages.pages
        guard let page else {
            let list = TextTable(columns: [.text("PAGE"), .text("ABOUT")], rows: all.map { [.init($0.name), .init($0.title)] })
            return Display.output.print([list])
        }
        let wanted = page.hasSuffix(".md") ? String(page.dropLast(3)) : page
        guard let found = all.first(where: { $0.name == wanted }) ?? all.first(where: { $0.name.hasSuffix("/" + wanted) }),
            let text = pages.text(of: found.name)
        else { throw CommandFailure(.failed, "there is no page \(page); rockpool docs lists them".inOneLine) }
        Display.output.write(text)
    }
}

/// The documentation that came with the running program.
extension DocumentationPages {
    /// Nil if none is installed beside the program.
    static var installed: Self? {
        let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return Self(besides: program ?? CommandLine.arguments[0])
    }
}

/// `rockpool version`: the version of the program and of what it stores (docs/reference/cli.md#version).
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
