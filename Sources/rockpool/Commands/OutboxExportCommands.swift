// `rockpool outbox export`: queued writes as JSON lines, curl commands or an HTTP Archive (docs/reference/cli.md#outbox-export;
// docs/outbox.md#export).
import ArgumentParser
import Foundation
import Glibc
import Logging
import RockpoolCore
import RockpoolStore
import Synchronization

extension OutboxCommand {
    struct Export: AsyncParsableCommand {
        enum Form: String, CaseIterable, ExpressibleByArgument { case jsonl, curl, har }

        static let configuration = CommandConfiguration(
            abstract: "Export operations with their bodies; only open ones without --state. Credentials are never exported.",
            discussion: """
                EXAMPLES
                  rockpool outbox export --state dead,conflicted --output failed.jsonl
                  rockpool outbox export --format curl --with-secrets         # to send by hand
                  rockpool outbox export --format har --state all --output outbox.har
                """)
        @Option(name: .long, help: "jsonl for programs, curl for a shell, har for browser tools.") var format: Form = .jsonl
        @Option(name: .long, help: "A state, several separated by commas, or all.", completion: Completions.states) var state: String?
        @Option(name: .long, help: "Only this lane.") var lane: String?
        @Flag(name: .long, help: "Export URLs unchanged; otherwise secret query parameters are REDACTED.") var withSecrets = false
        @Option(name: .shortAndLong, help: "The file, readable by its owner only; by default stdout.", completion: .file())
        var output: String?
        @Flag(name: .long, help: "Replace an existing file.") var force = false
        @OptionGroup var common: CommonOptions

        func run() async throws {
            var call = AdminCall.get("/v1/operations/export", query: ["format": format.rawValue])
            call.query["state"] = state
            call.query["lane"] = lane
            call.query["secrets"] = withSecrets ? "true" : nil
            let file = try output.map { try NewFile($0, replacing: force) }
            let bytes = Mutex<Int64>(0)
            do {
                try await Waiting.on("exporting, \(ForPeople.bytes(bytes.withLock { $0 }))") { [call] in
                    let sink: @Sendable (UnsafeRawBufferPointer) throws -> Void = { piece in
                        if let file {
                            try file.write(piece)
                        } else if Display.output.isTerminal {
                            Display.output.write(String(decoding: piece, as: UTF8.self))
                        } else {
                            try FileHandle.standardOutput.write(piece, named: "stdout")
                        }
                        bytes.withLock { $0 += Int64(piece.count) }
                    }
                    _ = try await common.withStores(having: { access($0.stateDir + "/data.sqlite", F_OK) == 0 }) { client in
                        try await client.send(call, through: AdminTransfer(sink: sink))
                    }
                }
                try file?.finish()
            } catch {
                file?.discard()
                throw error
            }
            if let output { Display.error.print("exported \(ForPeople.bytes(bytes.withLock { $0 })) to \(output)".inOneLine) }
        }
    }
}

/// `rockpool outbox import`: takes in what `outbox export` has written (docs/reference/cli.md#outbox-import; docs/outbox.md#import).
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

/// `rockpool outbox migrate`: the outbox of a stopped server into the database of a fleet, and back (docs/reference/cli.md#outbox-migrate).
extension OutboxCommand {
    struct Migrate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Move the outbox of a stopped server into the database of a fleet, or back.",
            discussion: .examples(
                "rockpool outbox migrate --to postgresql://rockpool@db1/rockpool", "rockpool outbox migrate --to sqlite",
                after: "Nothing is sent meanwhile. After an interruption it may run again: nothing is lost or doubled."))
        @Option(name: .long, help: "The database's address, without a password; postgresql for that of the configuration; or sqlite.")
        var to: String
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            let configuration = try options.common.load().configuration
            let storage = configuration.storage
            guard access(storage.stateDir + "/data.sqlite", F_OK) == 0 else {
                throw CommandFailure(.failed, "there is no outbox in \(storage.stateDir)".inOneLine)
            }
            let target = try target(configuration.outbox)
            SQLiteTemporaries.keep(in: storage)
            let logger = Logger(label: "rockpool", level: .error)
            let move = to == "sqlite" ? DataStore.takeBack : DataStore.bring
            let census = try await StartFailure.naming {
                try await Waiting.on("moving the outbox") { try await move(storage.stateDir, target, storage, WallClock.now, logger) }
            }
            let report = MigrationReport(store: to == "sqlite" ? .sqlite : .postgresql, counts: census)
            switch options.format {
            case .json: Display.output.print(String(decoding: try report.encoded, as: UTF8.self))
            case .table: Display.output.print(report)
            }
            guard options.format == .table else { return }
            let store = report.store.rawValue
            let isSet = configuration.outbox.store == report.store && (to == store || to == configuration.outbox.url)
            let address = report.store == .postgresql ? ", and outbox.url to its address" : ""
            Display.output.print("\nNext: " + (isSet ? "" : "set outbox.store to \(store)\(address); then ") + "start the server")
        }

        /// How this node takes part in the fleet.
        private func target(_ configured: OutboxSettings) throws -> OutboxSettings {
            var outbox = configured
            outbox.store = .postgresql
            if to != "sqlite", to != "postgresql" {
                do throws(Invalid) { outbox.url = try ScalarFormat.databaseURL.parse(to) } catch {
                    throw CommandFailure(.usage, "--to: \(error.reason), postgresql or sqlite".inOneLine)
                }
                outbox.urlFile = nil
            }
            guard outbox.url != nil || outbox.urlFile != nil else {
                throw CommandFailure(.usage, "name the fleet's database in outbox.url or outbox.url_file until the outbox has moved")
            }
            return outbox
        }
    }
}
