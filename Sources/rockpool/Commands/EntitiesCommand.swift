// `rockpool entities` (docs/reference/cli.md).
import ArgumentParser

struct EntitiesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "entities", abstract: "List declared resources: cached and upstream entities, pending writes, conflicts, last pull.",
        discussion: .examples(
            "rockpool entities"), shouldDisplay: false)
    @OptionGroup var options: ReadingOptions

    func run() async throws {
        try options.print(try await options.common.client().pages(of: .get("/v1/entities")), as: EntitiesReport.self)
    }
}
