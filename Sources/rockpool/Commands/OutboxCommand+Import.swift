// `rockpool outbox import`: takes in what `outbox export` has written (docs/reference/cli.md#outbox-import; docs/outbox.md#import).
import ArgumentParser
import Foundation
import RockpoolCore
import RockpoolStore
import Synchronization

extension OutboxCommand {
    struct Import: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Take in the operations of an export, under the same ids.",
            discussion: """
                What is there already is left alone: after an interruption, run it again. The outbox that was exported must not send any more.

                EXAMPLES
                  rockpool outbox import outbox.jsonl
                  rockpool outbox import - < outbox.jsonl
                """)
        @Argument(help: "The file, of outbox export --format jsonl; - is stdin.", completion: .file(extensions: ["jsonl"])) var file: String
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            let export = try ExportedLines(of: file)
            let done = Mutex(0)
            let report = try await Waiting.on("importing, \(done.withLock { $0 }) of \(export.lines.count)") {
                try await options.common.withStores(having: { access($0.stateDir + "/data.sqlite", F_OK) == 0 }) { client in
                    var report = OutboxImportReport()
                    for part in export.parts {
                        do { report += try await Self.send(export.bytes(of: part), to: client) } catch let failure as AdminFailure
                            where !failure.isNotRunning
                        {
                            throw export.named(failure, part, after: report)
                        }
                        done.withLock { $0 += part.count }
                    }
                    return report
                }
            }
            switch options.format {
            case .json: Display.output.print(String(decoding: try report.encoded, as: UTF8.self))
            case .table: Display.output.print(report)
            }
        }

        private static func send(_ bytes: Data, to client: AdminClient) async throws -> OutboxImportReport {
            let sent = Mutex(0)
            let source: @Sendable (UnsafeMutableRawBufferPointer) throws -> Int = { room in
                sent.withLock { sent in
                    let piece = bytes.dropFirst(sent).prefix(room.count)
                    piece.copyBytes(to: room)
                    sent += piece.count
                    return piece.count
                }
            }
            return try await client.send(.post("/v1/operations/import"), through: AdminTransfer(source: source)).decoded()
        }
    }
}

/// The lines of an export, in the order in which they are taken in.
struct ExportedLines {
    struct Line {
        let number: Int
        let id: String
        let bytes: Data
        let order: (place: Int64, sequence: Int64)
    }

    /// What one call takes: other nodes of a fleet wait for its end.
    private static let most = (lines: 256, bytes: Int.mib(1))

    let file: String
    let lines: [Line]

    /// - Throws: `CommandFailure` that names the first line that is no operation.
    init(of file: String) throws {
        let data: Data
        do {
            data =
                try file == "-"
                ? FileHandle.standardInput.readToEnd() ?? Data() : Data(contentsOf: URL(filePath: file), options: .mappedIfSafe)
        } catch { throw CommandFailure(.usage, "\(file) cannot be read: \(error.localizedDescription)".inOneLine) }
        try self.init(data, file: file)
    }

    init(_ data: Data, file: String) throws(CommandFailure) {
        self.file = file
        var lines: [Line] = []
        for (index, bytes) in data.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() where !bytes.isEmpty
        {
            guard let line = try? JSONValue.parse(Array(bytes)), let id = line["id"]?.string, let order = PortableOperation.order(of: line)
            else {
                throw CommandFailure(
                    .failed, "\(file):\(index + 1): this is no operation of rockpool outbox export; nothing was imported".inOneLine)
            }
            lines.append(Line(number: index + 1, id: id, bytes: bytes, order: order))
        }
        self.lines = lines.sorted { $0.order < $1.order }
    }

    /// The lines in portions for one call each.
    var parts: [ArraySlice<Line>] {
        var (parts, start, bytes): ([ArraySlice<Line>], Int, Int) = ([], 0, 0)
        for (index, line) in lines.enumerated() {
            if index > start, index - start == Self.most.lines || bytes + line.bytes.count > Self.most.bytes {
                parts.append(lines[start..<index])
                (start, bytes) = (index, 0)
            }
            bytes += line.bytes.count
        }
        return start < lines.count ? parts + [lines[start...]] : parts
    }

    func bytes(of part: ArraySlice<Line>) -> Data { Data(part.map(\.bytes).joined(separator: [UInt8(ascii: "\n")])) }

    /// A failure with the line of the operation that it names, and what came before it.
    func named(_ failure: AdminFailure, _ part: ArraySlice<Line>, after report: OutboxImportReport) -> CommandFailure {
        let line = part.first { "\(failure)".contains($0.id) }.map { "\(file):\($0.number): " } ?? ""
        let done =
            report.imported == 0 ? "nothing was imported" : "\(report.imported) were imported before; run it again when that is mended"
        return CommandFailure(failure.status, "\(line)\(failure); \(done)".inOneLine)
    }
}

/// What an import has brought.
struct OutboxImportReport: TabularReport, Codable, Equatable {
    var imported = 0
    var there = 0
    var repeated = 0
    var strangers = 0

    static func += (sum: inout Self, part: Self) {
        sum.imported += part.imported
        sum.there += part.there
        sum.repeated += part.repeated
        sum.strangers += part.strangers
    }

    var tables: [TextTable] {
        let rest: [(String, Int, String)] = [
            ("not sent", repeated, "another write has the client's key"),
            ("wait for their clients", strangers, "which are named after another install-key: copy it from there"),
        ]
        return [
            .facts(
                [("imported", .init(imported.counted("operation"))), ("already there", .init("\(there)"))]
                    + rest.filter { $0.1 > 0 }.map { name, count, why in (name, .init("\(count), \(why)")) })
        ]
    }
}
