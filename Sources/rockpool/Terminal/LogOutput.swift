// The log on stderr, as lines of text or as JSON (docs/guide/operating.md#log).
import Foundation
import Logging
import RockpoolCore
import Synchronization

/// The destination of the log, whose format may change while it is used.
final class LogOutput: Sendable {
    /// A line that cannot be written, because the disk is full or the reader has gone, is lost; the server goes on.
    static let standardError = LogOutput { Display.error.write($0) }

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

    /// Writes a line about the start of the server: as commands write it, or as an object of the log.
    func announce(_ line: String, level: Logger.Level = .notice) {
        switch format {
        case .text: write("rockpool: \(level == .warning ? "warning: " : "")\(line)".inOneLine + "\n")
        case .json:
            let moment = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
            write(level, line, label: "rockpool", details: [], at: moment)
        }
    }

    /// Writes a line of a failed command, or of a server that does not start.
    func fail(_ line: String) {
        switch format {
        case .text: write(line.inOneLine + "\n")
        case .json: announce(line.hasPrefix("rockpool: ") ? String(line.dropFirst("rockpool: ".count)) : line, level: .error)
        }
    }

    /// A value that contains spaces or quotes is written as a JSON string.
    private static func word(_ value: String) -> String {
        guard value.isEmpty || value.contains(where: { $0.isWhitespace || $0 == "\"" || $0 == "=" }) else { return value }
        return String(decoding: JSONValue.string(value).serialized(), as: UTF8.self)
    }
}
