// `rockpool cache purge`: one kind of selector, and a dry run that counts the same entries (contract §1, §4).
import ArgumentParser
import Foundation
import RockpoolCore

extension CacheCommand {
    struct Purge: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Take entries away, pinned or not, and say how many.",
            discussion: """
                Name URLs, or one of --prefix, --group, --category, --upstream; --group may name its --upstream too, for a group is of
                one origin.

                EXAMPLES
                  rockpool cache purge https://api.example.com/v1/notes https://api.example.com/v1/me
                  rockpool cache purge --prefix https://api.example.com/v1/media/ --dry-run
                  rockpool cache purge --group notes --upstream api   # the group of the Cache-Groups field (RFC 9875)
                """)
        /// URLs of one call: the server reads a head of some ten thousand bytes.
        private static let batchBytes = 8000

        @Argument(help: "Absolute URLs; every variant of them, whoever it belongs to.", transform: CacheURL.argument)
        var urls: [CacheURL] = []
        @Option(name: .long, help: "URLs that start so.") var prefix: String?
        @Option(name: .long, help: "Entries of this cache group, of any upstream unless one is named.") var group: String?
        @Option(name: .long, help: "Entries of this category.") var category: String?
        @Option(name: .long, help: "Entries of this upstream, by its name or its origin.") var upstream: String?
        @Flag(name: .long, help: "Count and change nothing.") var dryRun = false
        @OptionGroup var options: ReadingOptions

        func validate() throws {
            let selectors = [prefix, group, category, group == nil ? upstream : nil].compactMap(\.self)
            guard selectors.count + (urls.isEmpty ? 0 : 1) == 1 else {
                throw ValidationError("name URLs, or exactly one of --prefix, --group, --category and --upstream")
            }
            if selectors.first == "" || upstream == "" { throw ValidationError("an empty selector would mean everything") }
            if let prefix, !prefix.hasPrefix("http://"), !prefix.hasPrefix("https://") {
                throw ValidationError("--prefix is the beginning of a URL, such as https://api.example.com/v1/")
            }
        }

        /// Each within what a head may hold.
        var calls: [AdminCall] {
            var call = AdminCall.delete("/v1/cache", query: dryRun ? ["dryRun": "true"] : [:])
            guard !urls.isEmpty else {
                for (name, value) in [("prefix", prefix), ("group", group), ("category", category), ("upstream", upstream)] {
                    if let value { call.query[name] = value }
                }
                return [call]
            }
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
