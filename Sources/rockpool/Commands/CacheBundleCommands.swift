// `rockpool cache export|import`: shared responses as a WARC file (ISO 28500:2017; docs/reference/cli.md#cache-export).
import ArgumentParser
import Foundation
import RockpoolCore
import Synchronization

extension CacheCommand {
    struct Export: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Export stored responses to a WARC file, for another machine or another tool.",
            discussion: """
                Responses of an identity, or selected by a credential, are omitted. The file is complete or not written.

                EXAMPLES
                  rockpool cache export notes.warc --prefix https://api.example.com/v1/
                  rockpool cache export - | gzip > notes.warc.gz
                """)
        @Argument(help: "The file; - is stdout.", completion: .file(extensions: ["warc"])) var file: String
        @Option(name: .long, help: "Only URLs with this prefix.") var prefix: String?
        @Option(name: .long, help: "Only entries of this category.") var category: String?
        @Flag(name: .long, help: "Replace an existing file.") var force = false
        @OptionGroup var common: CommonOptions

        func run() async throws {
            var call = AdminCall.get("/v1/cache/export")
            call.query["prefix"] = prefix
            call.query["category"] = category
            let target = try BundleFile(writing: file, replacing: force)
            do {
                try await Waiting.on("exporting, \(target.written)") { [call] in
                    _ = try await common.withStores { try await $0.send(call, through: AdminTransfer(sink: target.write)) }
                }
                try target.finish()
            } catch {
                target.discard()
                throw error
            }
            Display.error.print("exported \(target.written)")
        }
    }

    struct Import: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Store the responses of a WARC file, as if they had been fetched.",
            discussion: """
                Each must be storable, whole and newer than what is stored. A file that breaks off is refused with the record's number;
                what came before it stays.

                EXAMPLES
                  rockpool cache import notes.warc
                  gunzip -c notes.warc.gz | rockpool cache import -
                """)
        @Argument(help: "The file; - is stdin.", completion: .file(extensions: ["warc"])) var file: String
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            guard let source = file == "-" ? .standardInput : FileHandle(forReadingAtPath: file) else {
                throw CommandFailure(.usage, "\(file) cannot be read: \(String(cString: strerror(errno)))".inOneLine)
            }
            let read = Mutex<Int64>(0)
            let reply = try await Waiting.on("importing, \(ForPeople.bytes(read.withLock { $0 })) read") {
                try await options.common.withStores { client in
                    try await client.send(
                        .post("/v1/cache/import"),
                        through: AdminTransfer(source: { room in
                            let data = try source.read(upToCount: room.count) ?? Data()
                            data.copyBytes(to: room)
                            read.withLock { $0 += Int64(data.count) }
                            return data.count
                        }))
                }
            }
            try options.print(reply, as: ImportReport.self)
        }
    }
}

/// The target of a bundle.
final class BundleFile: Sendable {
    private struct State {
        var reader = WARCReader()
        var isResponse = false
        var entries = 0
        var bytes: Int64 = 0
    }

    /// Nil: the target is stdout.
    private let file: NewFile?
    private let state = Mutex(State())

    /// Begins the file at `path`; `-` is stdout, but no terminal: the bodies are other people's text. Throws a failure with the reason if it
    /// cannot be written, or exists and is not to be replaced.
    init(writing path: String, replacing: Bool = false) throws(CommandFailure) {
        file = path == "-" ? nil : try NewFile(path, replacing: replacing)
        if file == nil, Display.output.isTerminal {
            throw CommandFailure(.usage, "a bundle is not for a terminal; name a file, or use a pipe")
        }
    }

    /// The entries and bytes written so far: `12 entries, 3.4 MB`.
    var written: String {
        let (entries, bytes) = state.withLock { ($0.entries, $0.bytes) }
        return "\(entries.counted("entry", "entries")), \(ForPeople.bytes(bytes))"
    }

    /// Writes the next bytes. Throws if the disk refuses them or they are not WARC.
    func write(_ bytes: UnsafeRawBufferPointer) throws {
        if let file { try file.write(bytes) } else { try FileHandle.standardOutput.write(bytes, named: "stdout") }
        try state.withLock { state in
            var rest = Array(bytes)[...]
            while let event = try state.reader.next(in: &rest) {
                if case .head(let head) = event { state.isResponse = head.type == "response" }
                if case .end = event, state.isResponse { state.entries += 1 }
            }
            state.bytes += Int64(bytes.count)
        }
    }

    /// Renames the file to its final name. Throws if it is incomplete or cannot be written to the end.
    func finish() throws {
        try state.withLock { try $0.reader.finish() }
        try file?.finish()
    }

    /// Removes the temporary file.
    func discard() { file?.discard() }
}

/// `rockpool cache prefetch`: fetches URLs in advance, in batches so that progress can be shown (docs/reference/cli.md#cache-prefetch).
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
