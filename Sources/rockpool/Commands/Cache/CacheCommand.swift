// `rockpool cache`: lists, explains, removes and pins stored responses (docs/reference/cli.md#cache).
import ArgumentParser
import RockpoolCore
import RockpoolStore

struct CacheCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cache", abstract: "List, explain, remove, pin and transfer stored responses.",
        discussion: """
            All subcommands except prefetch also work with the server stopped.

            EXAMPLES
              rockpool cache explain https://api.example.com/v1/notes   # why it misses
              rockpool cache prefetch --file urls.txt --pin             # for offline use
              rockpool cache purge --category assets --dry-run
              rockpool cache export notes.warc && rockpool cache import notes.warc
            """,
        subcommands: [
            List.self, Show.self, Explain.self, Purge.self, Prefetch.self, Pin.self, Unpin.self, Export.self, Import.self,
        ], defaultSubcommand: List.self)

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "ls", abstract: "List stored responses, by URL.",
            discussion: .examples(
                "rockpool cache ls --category critical --format json", "rockpool cache ls --match /v1/notes --stale",
                "rockpool cache ls --sort size --limit 20"))
        @OptionGroup var options: ReadingOptions
        @Option(name: .long, help: "Only URLs with this prefix.") var prefix: String?
        @Option(name: .long, help: "Only entries of this category.") var category: String?
        @Option(name: .long, help: "Only URLs with this text.") var match: String?
        @Option(name: .long, help: "A status or a class such as 4xx; several with commas.") var status: String?
        @Option(name: .long, help: "Only entries that were stored longer ago, such as 7d.", transform: TimeSpan.argument)
        var age: TimeSpan?
        @Flag(name: .long, help: "Only pinned entries.") var pinned = false
        @Flag(name: .long, help: "Only stale entries.") var stale = false
        @Option(name: .long, help: "url (default), size (the largest first), age (the oldest first) or hits (the most read first).")
        var sort: CacheListFilter.Order = .url
        @Option(name: .long, help: "The most items to list, from 1 to 1000; all by default.") var limit: Int?

        func validate() throws {
            if let limit, !(1...1000).contains(limit) { throw ValidationError("--limit is a number from 1 to 1000") }
        }

        func run() async throws {
            var call = AdminCall.get("/v1/cache", query: ["limit": String(limit ?? 1000)])
            call.query["prefix"] = prefix
            call.query["category"] = category
            call.query["path"] = match
            call.query["status"] = status
            call.query["olderThanSeconds"] = age.map { String($0.seconds) }
            call.query["pinned"] = pinned ? "true" : nil
            call.query["stale"] = stale ? "true" : nil
            call.query["sort"] = sort == .url ? nil : sort.rawValue
            let reply = try await options.common.withStores { [call, limit] client in
                if limit == nil { try await client.pages(of: call) } else { try await client.send(call) }
            }
            try options.print(reply, as: CacheListReport.self)
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show every variant stored for a URL: its head, times and identity. Credential values are hidden.",
            discussion: .examples("rockpool cache show https://api.example.com/v1/notes"))
        @Argument(help: "The absolute URL.", completion: Completions.urls, transform: CacheURL.argument) var url: CacheURL
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            let call = AdminCall.get("/v1/cache/entry", query: ["url": url.text])
            try options.print(try await options.common.withStores { try await $0.send(call) }, as: CacheEntryReport.self)
        }
    }

    struct Explain: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Explain how a request would be answered now: key, variants, freshness calculation, decision.",
            discussion: .examples(
                "rockpool cache explain https://api.example.com/v1/notes",
                "rockpool cache explain https://api.example.com/v1/notes --header 'Accept: */*'",
                after: "No request is sent and nothing is changed."))
        @Argument(help: "The absolute URL.", completion: Completions.urls, transform: CacheURL.argument) var url: CacheURL
        @Option(name: .long, help: "The request's method.") var method: String?
        @Option(name: .long, help: "A field of the request, Name: value; may be repeated.", transform: RequestField.argument)
        var header: [RequestField] = []
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            var call = AdminCall.get("/v1/cache/explain", query: ["url": url.text])
            call.query["method"] = method
            call.lists["header"] = header.map(\.line)
            let reply = try await options.common.withStores { [call] in try await $0.send(call) }
            try options.print(reply, as: ExplanationReport.self)
        }
    }

    struct Pin: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Pin a URL's stored responses so that they are not evicted, up to storage.pin_cap in total.",
            discussion: .examples("rockpool cache pin https://api.example.com/v1/notes"))
        @Argument(help: "The absolute URL.", completion: Completions.urls, transform: CacheURL.argument) var url: CacheURL
        @OptionGroup var common: CommonOptions

        func run() async throws {
            let call = AdminCall(method: "PUT", path: "/v1/cache/pins", query: ["url": url.text])
            _ = try await common.withStores { try await $0.send(call) }
            Display.output.print("\(url.text) is pinned".inOneLine)
        }
    }

    struct Unpin: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Unpin a URL's stored responses.",
            discussion: .examples(
                "rockpool cache unpin https://api.example.com/v1/notes"))
        @Argument(help: "The absolute URL.", completion: Completions.urls, transform: CacheURL.argument) var url: CacheURL
        @OptionGroup var common: CommonOptions

        func run() async throws {
            let call = AdminCall.delete("/v1/cache/pins", query: ["url": url.text])
            _ = try await common.withStores { try await $0.send(call) }
            Display.output.print("\(url.text) is not pinned".inOneLine)
        }
    }
}

extension CacheListFilter.Order: ExpressibleByArgument {}
