// `rockpool cache purge`: one kind of selector, and a dry run that counts the same entries (docs/reference/cli.md#cache-purge).
import ArgumentParser
import Foundation
import RockpoolCore

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
