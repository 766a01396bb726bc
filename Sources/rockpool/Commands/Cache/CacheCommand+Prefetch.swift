// `rockpool cache prefetch`: fetches URLs in advance, in batches so that progress can be shown (docs/reference/cli.md#cache-prefetch).
import ArgumentParser
import Foundation
import RockpoolCore
import Synchronization

extension CacheCommand {
    struct Prefetch: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Fetch URLs through the running server, so that they are available offline.",
            discussion: """
                Each is an ordinary GET: fresh responses are not fetched again, and the storage rules apply. Exits 0 if all are stored.

                EXAMPLES
                  rockpool cache prefetch https://api.example.com/v1/notes --pin
                  rockpool cache prefetch --file urls.txt    # one URL a line; - is stdin
                  rockpool cache prefetch --file urls.txt --header 'Authorization: Bearer abc'
                """)
        /// URLs per call.
        private static let batch = 16

        @Argument(help: "Absolute URLs.", transform: CacheURL.argument) var urls: [CacheURL] = []
        @Option(name: .long, help: "A file with one URL a line; - is stdin.", completion: .file()) var file: String?
        @Flag(name: .long, help: "Pin the responses, so that they are not evicted.") var pin = false
        @Option(name: .long, help: "A field of every request, Name: value; may be repeated.", transform: RequestField.argument)
        var header: [RequestField] = []
        @OptionGroup var options: ReadingOptions

        func validate() throws {
            if urls.isEmpty, file == nil { throw ValidationError("give URLs, or a file of URLs with --file") }
        }

        /// The arguments, then the lines of the file.
        func wanted() throws -> [CacheURL] {
            guard let file else { return urls }
            let data = file == "-" ? try FileHandle.standardInput.readToEnd() ?? Data() : FileManager.default.contents(atPath: file)
            guard let data, let text = String(data: data, encoding: .utf8) else {
                throw CommandFailure(.usage, "\(file) cannot be read as text".inOneLine)
            }
            return urls + (try URLList.parse(text, named: file))
        }

        private func call(for urls: some Sequence<CacheURL>) -> AdminCall {
            .post(
                "/v1/cache/prefetch",
                body: .map([
                    .init("urls", .list(urls.map { .text($0.text) })), .init("pin", .bool(pin)),
                    .init("headers", .map(header.map { .init($0.name, .text($0.value)) })),
                ]))
        }

        func run() async throws {
            let urls = try wanted()
            guard !urls.isEmpty else { throw CommandFailure(.usage, "there is no URL in \(file ?? "")".inOneLine) }
            let client = try options.common.client()
            let done = Mutex(0)
            let report = try await Waiting.on("fetched \(done.withLock { $0 }) of \(urls.count)") {
                var report = PrefetchReport(items: [], stored: 0)
                for start in stride(from: 0, to: urls.count, by: Self.batch) {
                    let reply = try await client.send(call(for: urls[start..<min(start + Self.batch, urls.count)]), timeout: .forever)
                    report += try reply.decoded(as: PrefetchReport.self)
                    done.withLock { $0 = report.items.count }
                }
                return report
            }
            try options.print(AdminReply(status: 200, body: try JSONEncoder.stable.encode(report)), as: PrefetchReport.self)
            let missing = report.items.count { !$0.stored || (pin && !$0.pinned) }
            guard missing == 0 else {
                throw CommandFailure(.failed, "\(missing) of \(report.items.count) are not \(pin ? "stored and pinned" : "stored")")
            }
        }
    }
}
