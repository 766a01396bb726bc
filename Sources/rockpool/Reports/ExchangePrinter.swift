// The lines of `rockpool tail` (docs/reference/cli.md#tail).
import Foundation
import RockpoolCore
import Synchronization

/// One request as `/v1/requests` shows it.
struct ExchangeItem: Decodable, Equatable {
    struct Timings: Decodable, Equatable {
        var queue: Double
        var dns: Double
        var connect: Double
        var tls: Double
        var firstByte: Double
        var transfer: Double?
    }

    struct Step: Decodable, Equatable {
        var step: String
        var detail: String
        var seconds: Double
    }

    var id: String
    var at: String
    var client: String?
    var method: String
    var url: String
    var status: Int
    var verdict: String
    var upstream: String?
    var category: String?
    var cacheStatus: String?
    var why: String
    var next: String?
    var operation: String?
    var error: String?
    var bytes: Int64
    var headSeconds: Double
    var seconds: Double
    var timings: Timings?
    var steps: [Step]
    var represents: Int
}

extension ExchangeItem {
    /// The verdict; of a stale response with the word that its `Cache-Status` has.
    fileprivate var verdictWords: String { verdict == "stale" ? "stale hit" : verdict }

    /// Why a stale response was served, as its `Cache-Status` says it.
    fileprivate var staleDetail: String? {
        guard verdict == "stale" else { return nil }
        return cacheStatus.flatMap { $0.firstMatch(of: /detail=([A-Za-z-]+)/) }.map { String($0.1) }
    }
}

/// The output for each request.
enum ExchangeFormat: String, CaseIterable { case text, json }

/// Prints requests as they arrive, each in one line.
final class ExchangePrinter: Sendable {
    private let format: ExchangeFormat
    private let display: Display
    /// The beginning of a line that has not arrived wholly.
    private let rest = Mutex(Data())

    init(format: ExchangeFormat, on display: Display) { (self.format, self.display) = (format, display) }

    /// Takes a piece of the stream of lines. Throws if stdout is closed.
    func take(_ piece: UnsafeRawBufferPointer) throws {
        let lines = rest.withLock { rest in
            rest.append(contentsOf: piece)
            var lines = rest.split(separator: 0x0A, omittingEmptySubsequences: false).map { Data($0) }
            rest = lines.popLast() ?? Data()
            return lines
        }
        for line in lines where !line.isEmpty { try print(line) }
    }

    /// Prints a page of `/v1/requests`, the oldest first.
    func print(page: Data) throws {
        for item in try JSONValue.parse(Array(page))["items"]?.array?.reversed() ?? [] { try print(Data(item.serialized())) }
    }

    private func print(_ json: Data) throws {
        switch format {
        case .json: try write(String(decoding: json, as: UTF8.self))
        case .text: try write(line(of: JSONDecoder().decode(ExchangeItem.self, from: json)))
        }
    }

    private func write(_ line: String) throws {
        try FileHandle.standardOutput.write((display.isTerminal ? line.shownOnTerminal : line) + "\n", named: "stdout")
    }

    /// `12:03:04.123 200 hit       GET   1.2 kB     340 µs https://api.example.com/v1/notes (fresh)`; the reason gives way on a narrow
    /// terminal, the URL never does.
    func line(of item: ExchangeItem) -> String {
        let status = item.status == 0 ? "–" : "\(item.status)"
        let many = item.represents > 1 ? " ×\(item.represents)" : ""
        let begin = "\(Self.clock(item.at)) "
        let middle = [
            Self.padded(item.method, 7), Self.padded(ForPeople.bytes(item.bytes), 9, right: true),
            Self.padded(item.operation != nil && item.seconds == 0 ? "" : Self.span(item.seconds), 8, right: true),
            item.url.inOneLine + many,
        ].joined(separator: " ")
        let error = item.error.flatMap { item.why.contains($0) ? nil : $0 }
        let reasons = [item.staleDetail, error, item.why.isEmpty ? nil : item.why, item.next.map { "next: \($0)" }].compactMap(\.self)
        var reason = reasons.isEmpty ? "" : "  \(reasons.joined(separator: "; "))".inOneLine
        let verdict = Self.padded(item.verdictWords, 11)
        if let width = display.width, item.next == nil {
            let room = width - begin.count - 4 - verdict.count - 1 - middle.count
            if reason.count > room { reason = room > 12 ? reason.prefix(room - 1) + "…" : "" }
        }
        return begin + painted(Self.padded(status, 3), Self.colour(of: item)) + " " + painted(verdict, Self.colour(of: item)) + " " + middle
            + reason
    }

    private func painted(_ text: String, _ colour: Colour?) -> String { display.hasColour ? colour?.painted(text) ?? text : text }

    private static func colour(of item: ExchangeItem) -> Colour? {
        if item.status >= 500 || ["dead", "failed", "refused"].contains(item.verdict) { return .bad }
        if item.status >= 400 || ["queued", "stale", "conflicted", "uncertain", "parked"].contains(item.verdict) { return .warning }
        return ["hit", "revalidated", "collapsed", "delivered"].contains(item.verdict) ? .good : nil
    }

    private static func padded(_ text: String, _ width: Int, right: Bool = false) -> String {
        let padding = String(repeating: " ", count: max(0, width - text.count))
        return right ? padding + text : text + padding
    }

    /// The time of day of an RFC 3339 time.
    private static func clock(_ text: String) -> String { text.count == 24 ? String(text.dropFirst(11).dropLast()) : text }

    /// `340 µs`, `12 ms`, `1.2 s`.
    static func span(_ seconds: Double) -> String {
        if seconds < 0.001 { return "\(Int((seconds * 1_000_000).rounded())) µs" }
        if seconds < 1 { return "\(Int((seconds * 1000).rounded())) ms" }
        return "\(Double(Int((seconds * 10).rounded())) / 10) s"
    }
}
