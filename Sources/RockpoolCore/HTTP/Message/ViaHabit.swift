// Whether an upstream compresses for requests with `Via`: nginx by default does not (`gzip_proxied off`), and every answer then costs more
// through a proxy than without (docs/reference/behaviour.md#via).
import HTTPTypes

/// The setting `send_via`.
package enum SendVia: String, CaseIterable, Sendable, Codable { case auto, always, never }

/// What is known about one upstream. `Via` is left out of a request after an answer that should have been compressed, and stays out if that
/// helps.
package struct ViaHabit: Hashable, Sendable {
    private enum State: Hashable, Sendable {
        case unknown
        /// `Via` is left out until an answer of this type arrives.
        case trying(String)
        /// Compression depends on `Via`.
        case withheld(since: Timestamp)
        /// Compression does not depend on `Via`.
        case sent(since: Timestamp)
    }

    /// The time after which a finding is examined again.
    static let lasting = TimeSpan.days(1)
    /// Uncompressed bodies below this size mean nothing: servers leave small ones as they are.
    static let leastBody: Int64 = .kib(1)
    private static let typeLimit = 32

    private var state = State.unknown
    /// Types that are not compressed without `Via` either.
    private var plainTypes: Set<String> = []

    package init() {}

    /// True if the next request is sent without `Via`.
    package func withholds(at now: Timestamp) -> Bool {
        switch state {
        case .unknown, .sent: false
        case .trying: true
        case .withheld(let since): now - since < Self.lasting
        }
    }

    /// True if `Via` is left out because compression depends on it.
    package var isProved: Bool { if case .withheld = state { true } else { false } }

    /// Takes account of an answer to a read.
    package mutating func learn(from answer: ResponseHead, length: Int64?, to request: RequestHead, hadVia: Bool, now: Timestamp) {
        guard request.method == .get, answer.status == 200, let type = Self.compressibleType(answer.fields),
            request.fields[.acceptEncoding].map(Self.namesCoding) == true
        else { return }
        let coding = answer.fields[.contentEncoding].map { FieldList.trimmed($0[...]).lowercased() } ?? "identity"
        let isCompressed = coding != "identity"
        guard isCompressed || length ?? Self.leastBody >= Self.leastBody else { return }
        if case .sent(let since) = state, now - since >= Self.lasting { (state, plainTypes) = (.unknown, []) }
        switch (state, hadVia, isCompressed) {
        case (_, true, true): state = .sent(since: now)
        case (.withheld, true, false): state = .withheld(since: now)
        case (.unknown, true, false) where !plainTypes.contains(type) && plainTypes.count < Self.typeLimit: state = .trying(type)
        case (.trying, false, true): state = .withheld(since: now)
        case (.trying(type), false, false):
            plainTypes.insert(type)
            state = .unknown
        default: break
        }
    }

    private static func namesCoding(_ value: String) -> Bool {
        let codings: [StaticString] = ["gzip", "br", "zstd", "deflate"]
        return codings.contains { value.contains(anyCase: $0) }
    }

    /// The media type of a body that servers compress; nil for others, and where a change of the coding is forbidden (RFC 9111 §5.2.2.6).
    private static func compressibleType(_ fields: HTTPFields) -> String? {
        guard let type = MediaType.essence(of: fields) else { return nil }
        guard fields[.cacheControl]?.contains(anyCase: "no-transform") != true else { return nil }
        let isText = type.hasPrefix("text/") || ["json", "javascript", "xml"].contains { type.hasSuffix($0) }
        return isText && type != "text/event-stream" ? type : nil
    }
}
