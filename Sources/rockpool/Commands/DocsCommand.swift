// `rockpool docs`: the documentation that came with the program (docs/reference/cli.md#docs).
import ArgumentParser
import RockpoolAdmin

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
