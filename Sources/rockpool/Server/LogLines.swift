// The log on stderr, as lines of text or as JSON (docs/guide/operating.md#log).
import Foundation
import Logging
import RockpoolCore
import Synchronization

/// The destination of the log, whose format may change while it is used.
final class LogOutput: Sendable {
    /// A line that cannot be written, because the disk is full or the reader has gone, is lost; the server goes on.
    static let standardError = LogOutput { line in try? FileHandle.standardError.write(contentsOf: Data(line.utf8)) }

    private let current = Mutex(LogFormat.text)
    private let write: @Sendable (String) -> Void

    init(write: @escaping @Sendable (String) -> Void) { self.write = write }

    var format: LogFormat {
        get { current.withLock { $0 } }
        set { current.withLock { $0 = newValue } }
    }

    /// Writes one line; control characters of the texts are removed.
    func write(_ level: Logger.Level, _ message: String, label: String, details: [(name: String, value: String)], at moment: Timestamp) {
        let at = RFC3339.format(moment)
        switch format {
        case .text:
            let words = details.map { "\($0.name)=\(Self.word($0.value))" }
            write(([at, level.rawValue, "\(label): \(message)"] + words).joined(separator: " ").inOneLine + "\n")
        case .json:
            let own = [("at", at), ("level", level.rawValue), ("message", message)]
            let members = own + details.map { (own.map(\.0).contains($0.name) ? "\(label).\($0.name)" : $0.name, $0.value) }
            let object = JSONValue.object(JSONObject(members.map { ($0.0, JSONValue.string($0.1)) }))
            write(String(decoding: object.serialized(), as: UTF8.self) + "\n")
        }
    }

    /// A value that contains spaces or quotes is written as a JSON string.
    private static func word(_ value: String) -> String {
        guard value.isEmpty || value.contains(where: { $0.isWhitespace || $0 == "\"" || $0 == "=" }) else { return value }
        return String(decoding: JSONValue.string(value).serialized(), as: UTF8.self)
    }
}

/// swift-log's handler for one logger.
struct LogLines: LogHandler {
    let label: String
    let output: LogOutput
    var logLevel = Logger.Level.notice
    var metadata: Logger.Metadata = [:]

    init(label: String, output: LogOutput) {
        self.label = label
        self.output = output
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let details = metadata.merging(event.metadata ?? [:]) { $1 }.sorted { $0.key < $1.key }.map { (name: $0.key, value: "\($0.value)") }
        output.write(event.level, "\(event.message)", label: label, details: details, at: WallClock.now())
    }
}
