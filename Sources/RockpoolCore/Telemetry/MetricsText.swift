// The text a Prometheus server scrapes (exposition format 0.0.4): one family after the other, help and type before its samples.

/// The builder of a scrape's text.
package struct MetricsText: Sendable {
    package enum Kind: String, Sendable { case counter, gauge, histogram }
    package typealias Labels = KeyValuePairs<String, String>

    package private(set) var text = ""

    package init() {}

    /// Appends one family without labels.
    package mutating func add(_ name: String, kind: Kind, help: String, value: some Numeric & CustomStringConvertible) {
        begin(name, kind: kind, help: help)
        sample(name, labels: [:], value: "\(value)")
    }

    /// Appends one family with a sample for each value of a label; the values must be few.
    package mutating func add(
        _ name: String, kind: Kind, help: String, by label: String, values: [(String, some Numeric & CustomStringConvertible)]
    ) {
        begin(name, kind: kind, help: help)
        for (value, number) in values { sample(name, labels: [label: value], value: "\(number)") }
    }

    /// Appends one family with a sample for each combination of labels; they must be few.
    package mutating func add(_ name: String, kind: Kind, help: String, samples: [(Labels, some Numeric & CustomStringConvertible)]) {
        begin(name, kind: kind, help: help)
        for (labels, value) in samples { sample(name, labels: labels, value: "\(value)") }
    }

    /// Appends one family of histograms, with cumulative buckets as the format requires.
    package mutating func add(_ name: String, help: String, by label: String, histograms: [(String, BucketCounts)]) {
        begin(name, kind: .histogram, help: help)
        for (value, histogram) in histograms {
            var below = 0
            for (bound, count) in zip(histogram.bounds, histogram.counts) {
                below += count
                sample(name + "_bucket", labels: [label: value, "le": "\(bound)"], value: "\(below)")
            }
            sample(name + "_bucket", labels: [label: value, "le": "+Inf"], value: "\(histogram.count)")
            sample(name + "_sum", labels: [label: value], value: "\(histogram.sum)")
            sample(name + "_count", labels: [label: value], value: "\(histogram.count)")
        }
    }

    private mutating func begin(_ name: String, kind: Kind, help: String) {
        text += "# HELP \(name) \(Self.escaped(help))\n# TYPE \(name) \(kind.rawValue)\n"
    }

    private mutating func sample(_ name: String, labels: Labels, value: String) {
        let list = labels.map { "\($0.key)=\"\(Self.escaped($0.value, quotes: true))\"" }.joined(separator: ",")
        text += list.isEmpty ? "\(name) \(value)\n" : "\(name){\(list)} \(value)\n"
    }

    private static func escaped(_ text: String, quotes: Bool = false) -> String {
        var result = ""
        for character in text.unicodeScalars {
            switch character {
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\"" where quotes: result += "\\\""
            default: result.unicodeScalars.append(character)
            }
        }
        return result
    }
}
