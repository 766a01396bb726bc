// `rockpool cache export|import`: shared responses as a WARC file (ISO 28500:2017; docs/reference/cli.md#cache-export).
import ArgumentParser
import Foundation
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
