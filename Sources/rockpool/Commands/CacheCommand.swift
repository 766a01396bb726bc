// `rockpool cache`: lists, explains, removes and pins stored responses (docs/reference/cli.md#cache).
import ArgumentParser
import Foundation
import HTTPTypes
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

/// `rockpool cache purge`: one kind of selector, and a dry run that counts the same entries (docs/reference/cli.md#cache-purge).
extension CacheCommand {
    struct Purge: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove entries, including pinned ones, and report their number.",
            discussion: """
                Give URLs, selectors, or both; an entry is removed if all of them apply. A group is a name in Cache-Groups, Surrogate-Key,
                Cache-Tag or xkey of the response.

                EXAMPLES
                  rockpool cache purge https://api.example.com/v1/notes
                  rockpool cache purge --prefix https://api.example.com/v1/media/ --dry-run
                  rockpool cache purge --group notes --upstream notes
                  rockpool cache purge --glob 'https://api.example.com/*/thumb*' --older-than 7d
                """)
        /// Bytes of the URLs of one call: the server accepts a request head of some ten thousand bytes.
        private static let batchBytes = 8000

        @Argument(help: "Absolute URLs; every variant of all identities is removed.", transform: CacheURL.argument)
        var urls: [CacheURL] = []
        @Option(name: .long, help: "URLs with this prefix.") var prefix: String?
        @Option(name: .long, help: "URLs that match; * stands for any characters, slashes included.") var glob: String?
        @Option(name: .long, help: "Entries of this cache group or tag; may be repeated, for any of them.") var group: [String] = []
        @Option(name: .long, help: "Entries of this category.") var category: String?
        @Option(name: .long, help: "Entries of this upstream, by its name or its origin.", completion: Completions.upstreams) var upstream:
            String?
        @Option(name: .long, help: "Entries that were stored longer ago, such as 7d.", transform: TimeSpan.argument)
        var olderThan: TimeSpan?
        @Flag(name: .long, help: "Only count the entries.") var dryRun = false
        @OptionGroup var options: ReadingOptions

        func validate() throws {
            let selectors = [prefix, glob, category, upstream].compactMap(\.self) + group
            guard !selectors.isEmpty || !urls.isEmpty || olderThan != nil else {
                throw ValidationError("give URLs, or at least one of --prefix, --glob, --group, --category, --upstream and --older-than")
            }
            if selectors.contains("") { throw ValidationError("an empty selector would select everything") }
            for (name, text) in [("--prefix", prefix), ("--glob", glob)] {
                if let text, !text.hasPrefix("http://"), !text.hasPrefix("https://") {
                    throw ValidationError("\(name) is the beginning of a URL, such as https://api.example.com/v1/")
                }
            }
        }

        /// The calls, each within the size of a request head.
        var calls: [AdminCall] {
            var call = AdminCall.delete("/v1/cache", query: dryRun ? ["dryRun": "true"] : [:])
            for (name, value) in [("prefix", prefix), ("glob", glob), ("category", category), ("upstream", upstream)] {
                if let value { call.query[name] = value }
            }
            if let olderThan { call.query["olderThanSeconds"] = String(olderThan.seconds) }
            if !group.isEmpty { call.lists["group"] = group }
            guard !urls.isEmpty else { return [call] }
            var calls: [AdminCall] = []
            for url in urls {
                if let last = calls.last, last.target.utf8.count < Self.batchBytes {
                    calls[calls.count - 1].lists["url"]?.append(url.text)
                } else {
                    var next = call
                    next.lists["url"] = [url.text]
                    calls.append(next)
                }
            }
            return calls
        }

        func run() async throws {
            let calls = calls
            let replies = try await Waiting.on("purging") {
                try await options.common.withStores { client in
                    var replies: [AdminReply] = []
                    for call in calls { replies.append(try await client.send(call, timeout: .forever)) }
                    return replies
                }
            }
            guard let first = replies.first else { return }
            if replies.count == 1 { return try options.print(first, as: PurgeReport.self) }
            let sum = try replies.map { try $0.decoded(as: PurgeReport.self) }.reduce(PurgeReport(dryRun: dryRun, entries: 0, bytes: 0), +)
            try options.print(AdminReply(status: 200, body: try JSONEncoder.stable.encode(sum)), as: PurgeReport.self)
        }
    }
}

/// An absolute URL in the cache's form (docs/reference/cli.md#cache: bad usage is 64): host in lower case, no default port.
struct CacheURL: Hashable, Sendable {
    let text: String

    /// Throws the reason if `text` is not an absolute URL.
    init(_ text: String) throws(Refusal) { self.text = try RequestHead(url: text).url }

    /// Parses an argument. Throws a usage error with the reason.
    static func argument(from text: String) throws -> CacheURL {
        do throws(Refusal) { return try CacheURL(text) } catch { throw ValidationError(error.detail) }
    }
}

/// A request field, `Name: value`.
struct RequestField: Hashable, Sendable {
    let name: String
    let value: String

    var line: String { "\(name): \(value)" }

    /// Parses an argument. Throws a usage error if it is not a field.
    static func argument(from text: String) throws -> RequestField {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let value = String((parts.last ?? "").drop { $0 == " " || $0 == "\t" })
        guard parts.count == 2, HTTPField.Name(String(parts[0])) != nil, HTTPField.isValidValue(value) else {
            throw ValidationError("a header is written Name: value")
        }
        return RequestField(name: String(parts[0]), value: value)
    }
}

/// The list of URLs in a file: one per line; empty lines and lines that begin with `#` are ignored.
enum URLList {
    /// Throws a usage failure that names the first bad line.
    static func parse(_ text: String, named name: String) throws(CommandFailure) -> [CacheURL] {
        var urls: [CacheURL] = []
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let line = line.trimming
            if line.isEmpty || line.hasPrefix("#") { continue }
            do throws(Refusal) {
                urls.append(try CacheURL(String(line)))
            } catch {
                throw CommandFailure(.usage, "\(name):\(index + 1): \(error.detail)".inOneLine)
            }
        }
        return urls
    }
}

extension Substring {
    fileprivate var trimming: Substring {
        var text = drop(while: \.isWhitespace)
        while text.last?.isWhitespace == true { text.removeLast() }
        return text
    }
}
