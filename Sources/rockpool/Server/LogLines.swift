// The handler of the log (docs/guide/operating.md#log).
import Logging

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
