// Numbers and texts in a form for people: 12.3 MB, 2 h 5 min, 87.5% (exact values are in `--format json`), and nothing that controls a
// terminal (docs/security-model.md#terminal).
import Foundation
import RockpoolCore

/// Numbers in a form for people: 12.3 MB, 2 h 5 min, 87.5% (exact values are in `--format json`).
enum ForPeople {
    /// A size with one decimal and a decimal unit: `12.3 MB`.
    static func bytes(_ count: Int64) -> String { ByteCount(count).rounded }

    /// A duration in its two largest units: `2 h 5 min`, `40 s`, `3 d`.
    static func seconds(_ count: Double) -> String {
        guard count.isFinite else { return "–" }
        guard count >= 1 else { return count > 0 ? "under 1 s" : "0 s" }
        var rest = Int64(min(count, 1e15))
        var parts: [String] = []
        for (name, length) in [("d", Int64(86400)), ("h", 3600), ("min", 60), ("s", 1)] where parts.count < 2 {
            if rest >= length {
                parts.append("\(rest / length) \(name)")
            } else if !parts.isEmpty {
                break
            }
            rest %= length
        }
        return parts.joined(separator: " ")
    }

    /// An RFC 3339 time as its age on a terminal, `2 min ago` or `in 2 min`, and as a time elsewhere.
    static func age(_ text: String?, on display: Display = .output) -> String {
        let now = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
        guard display.isTerminal, let text, let moment = Timestamp(stated: .string(text)) else { return time(text) }
        let away = (now - moment).milliseconds.magnitude
        guard away >= 1000 else { return "now" }
        let span = seconds(Double(away) / 1000).split(separator: " ").prefix(2).joined(separator: " ")
        return moment > now ? "in \(span)" : "\(span) ago"
    }

    /// Ids for a list: on a terminal the shortest endings, of at least eight characters, that differ; elsewhere the whole ids.
    static func ids(_ ids: [String], on display: Display = .output) -> [String] {
        guard display.isTerminal else { return ids }
        let length = (8...36).first { length in Set(ids.map { $0.suffix(length) }).count == Set(ids).count } ?? 36
        return ids.map { String($0.suffix(length)) }
    }

    /// A URL for a list: on a terminal its path and query alone, because the line is short.
    static func target(_ url: String, on display: Display = .output) -> String {
        guard display.isTerminal, let host = url.firstRange(of: "://")?.upperBound, let path = url[host...].firstIndex(of: "/") else {
            return url
        }
        return String(url[path...])
    }

    /// A ratio from 0 to 1 as a percentage with one decimal.
    static func percent(_ ratio: Double) -> String {
        guard ratio.isFinite, ratio.magnitude < 1e6 else { return "–" }
        let thousandths = Int((ratio * 1000).rounded())
        return "\(thousandths / 10).\(abs(thousandths % 10))%"
    }

    /// A part of a whole: `12.3 MB of 500 MB (2.5%)`.
    static func share(_ part: Int64, of whole: Int64) -> String {
        guard whole > 0 else { return bytes(part) }
        return "\(bytes(part)) of \(bytes(whole)) (\(percent(Double(part) / Double(whole))))"
    }

    /// An RFC 3339 time, cut to seconds: `2026-11-21 08:25:03Z`.
    static func time(_ text: String?) -> String {
        guard let text, text.count >= 20, text.hasSuffix("Z") else { return text ?? "–" }
        return text.prefix(19).replacing("T", with: " ") + "Z"
    }
}

/// A text or a number from the server, as text.
struct Word: Decodable, Hashable {
    var text: String

    init(_ text: String) { self.text = text }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let text = try? container.decode(String.self) {
            self.text = text
        } else if let number = try? container.decode(Int64.self) {
            text = String(number)
        } else {
            text = String(try container.decode(Double.self))
        }
    }
}

/// Texts of servers, URLs and files on a terminal, which must not control it (docs/security-model.md#terminal).
extension String {
    /// The text as one line: what controls a terminal, breaks a line or changes the direction of writing becomes a space.
    var inOneLine: String { String(unicodeScalars.map { $0.steersTerminal ? " " : Character($0) }) }

    /// The text for a terminal, the last step of every output: what would control it is written as `\uXXXX`, which JSON understands as well.
    /// Line breaks, tabs, and the sequences for colours, erasing and the cursor's return, which the commands use, remain.
    var shownOnTerminal: String {
        guard unicodeScalars.contains(where: { $0.steersTerminal && $0 != "\n" }) else { return self }
        var shown = UnicodeScalarView()
        var rest = unicodeScalars[...]
        while let scalar = rest.first {
            let own = scalar == "\u{1B}" ? Self.ownSequence(rest) : ["\n", "\t", "\r"].contains(scalar) ? rest.prefix(1) : nil
            if let own {
                shown.append(contentsOf: own)
                rest = rest[own.endIndex...]
                continue
            }
            if scalar.steersTerminal {
                let digits = String(scalar.value, radix: 16)
                shown.append(contentsOf: ("\\u" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits).unicodeScalars)
            } else {
                shown.append(scalar)
            }
            rest.removeFirst()
        }
        return String(shown)
    }

    /// The sequence of a command's own at the beginning of a text: `ESC [ numbers`, then `m`, `J`, `K` or `H`.
    private static func ownSequence(_ text: Substring.UnicodeScalarView) -> Substring.UnicodeScalarView? {
        let inner = text.dropFirst()
        guard inner.first == "[" else { return nil }
        let end = inner.dropFirst().drop { ("0"..."9").contains($0) || $0 == ";" }
        guard let last = end.first, ["m", "J", "K", "H"].contains(last) else { return nil }
        return text[..<end.index(after: end.startIndex)]
    }
}

extension Unicode.Scalar {
    /// True for characters that control a terminal, end a line in one or change the direction of writing, so that a text looks like another.
    fileprivate var steersTerminal: Bool {
        guard value >= 0x80 else { return value < 0x20 || value == 0x7F }
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: return true
        default: return properties.isBidiControl
        }
    }
}
