// Messages to an operator: what they are about, who gets them, how often (docs/guide/operating.md#alarms), and their signatures.
package import HTTPTypes

/// A notice, of one event or of several of the same kind and upstream.
package struct Notice: Hashable, Sendable {
    /// Operations that a notice names at most.
    package static let operationLimit = 10

    /// nil for a test.
    package var kind: NoticeKind?
    package var upstream: String?
    /// The number of events that it stands for.
    package var count = 1
    /// Ids of the operations, the first ones.
    package var operations: [String] = []
    /// The measured value, such as "has waited for 12m".
    package var measure: String?
    /// The last known error.
    package var cause: String?
    /// The line of the outbox's log on which its first event rests.
    package var line: Int64?

    package init(_ kind: NoticeKind?, upstream: String? = nil) {
        self.kind = kind
        self.upstream = upstream
    }

    /// Adds a later event of the same kind and upstream.
    package mutating func fold(_ later: Notice) {
        count += later.count
        operations = Array((operations + later.operations).prefix(Self.operationLimit))
        cause = later.cause ?? cause
        measure = later.measure ?? measure
    }

    /// One sentence for people.
    package var summary: String {
        let place = upstream.map { " to \($0)" } ?? ""
        let writes = count == 1 ? "A queued write\(place) is" : count.counted("", "queued writes\(place) are")
        let what =
            switch kind {
            case .dead, .conflicted, .uncertain, .parked: "\(writes) \(kind?.rawValue ?? "")"
            case .oldestPending: "A queued write\(place) \(measure ?? "waits")"
            case .massRefusal: "The queue\(place) pauses for \(measure ?? "a route")"
            case .storage: measure ?? "Storage runs short"
            case .away: "\(upstream ?? "An upstream") \(measure ?? "does not answer")"
            case nil: "This is a test of a notice"
            }
        return what + (cause.map { ": \($0)" } ?? "")
    }

    /// The command that shows more.
    package var next: String {
        switch kind {
        case .dead, .conflicted, .uncertain, .parked:
            if count == 1, let id = operations.first { return "rockpool outbox show \(id)" }
            return "rockpool outbox ls --state \(kind?.rawValue ?? "all")" + (upstream.map { " --upstream \($0)" } ?? "")
        case .oldestPending: return operations.first.map { "rockpool outbox show \($0)" } ?? "rockpool outbox ls"
        case .massRefusal: return "rockpool outbox ls --state dead,uncertain,conflicted" + (upstream.map { " --upstream \($0)" } ?? "")
        case .storage: return "rockpool storage-cleanup --dry-run"
        case .away: return "rockpool network"
        case nil: return "rockpool status"
        }
    }

    /// The payload of a webhook, and the input of a command.
    package func json(at moment: Timestamp) -> JSONValue {
        [
            "type": .string("rockpool." + (kind?.rawValue ?? "test")),
            "timestamp": .string(RFC3339.format(moment)),
            "data": [
                "event": .string(kind?.rawValue ?? "test"),
                "upstream": .optional(upstream),
                "count": .number(JSONNumber(Int64(count))),
                "summary": .string(summary),
                "cause": .optional(cause),
                "next": .string(next),
                "operations": .array(operations.map { .string($0) }),
            ],
        ]
    }
}

/// The reason of a notice, as `notify.on` names it.
package enum NoticeKind: String, CaseIterable, Sendable, Codable {
    case dead, conflicted, uncertain, parked
    /// A route pauses, because its writes are refused one like the other.
    case massRefusal = "mass_refusal"
    /// A write has waited for longer than `notify.oldest_pending`.
    case oldestPending = "oldest_pending"
    /// The state directory holds more than `notify.storage`, or a disk is full.
    case storage
    /// An upstream has not answered for longer than `notify.away`.
    case away

    /// The kinds without `notify.on`: those that need a person.
    package static let standard: [NoticeKind] = allCases.filter { $0 != .parked }
}

/// One entry of `notify` (docs/reference/configuration.md#notify): the events, their limits, and one way to tell.
package struct NoticeRule: Hashable, Sendable {
    package var on = NoticeKind.standard
    /// The age of the oldest waiting write from which `oldest_pending` applies.
    package var oldestPending = TimeSpan.minutes(10)
    /// The share of `storage.data_limit` in percent from which `storage` applies.
    package var storagePercent = 90
    /// The time without an answer from which `away` applies.
    package var away = TimeSpan.minutes(5)
    /// The period in which further events of one kind and upstream are counted instead of told.
    package var every = TimeSpan.minutes(1)
    /// The program and its arguments; empty: none.
    package var command: [String] = []
    package var webhook: WebhookSettings?
    /// True to show a notification on the desktop.
    package var desktop = false

    package init() {}

    /// The number of ways to tell; a valid rule has one.
    package var wayCount: Int { (command.isEmpty ? 0 : 1) + (webhook == nil ? 0 : 1) + (desktop ? 1 : 0) }

    /// What it tells, for messages: the webhook's URL without its query, the program, or `desktop`.
    package var target: String {
        if let webhook { return String(webhook.url.prefix { $0 != "?" }) }
        return desktop ? "desktop" : command.first ?? ""
    }
}

/// The receiver of a webhook.
package struct WebhookSettings: Hashable, Sendable {
    package var url: String
    /// The file with the signing secret.
    package var secretFile: String

    package init(url: String, secretFile: String) {
        self.url = url
        self.secretFile = secretFile
    }
}

/// Where the ends of writes may be posted (`Rockpool-Callback`).
package struct CallbackSettings: Hashable, Sendable {
    /// Origins that a client may name; empty: none.
    package var origins: [OriginAddress] = []
    /// The file with the signing secret.
    package var secretFile: String?

    package init() {}
}

/// Decides which notices are sent now, and which are counted until the end of a period.
package struct NoticeGate: Sendable {
    private struct Key: Hashable {
        var kind: NoticeKind?
        var upstream: String?
    }

    private struct Window {
        var end: Timestamp
        var held: Notice?
    }

    private let every: TimeSpan
    private var windows: [Key: Window] = [:]

    /// - Parameter every: the period.
    package init(every: TimeSpan) { self.every = every }

    /// Returns the notice if it may be sent now; otherwise holds it.
    package mutating func admit(_ notice: Notice, now: Timestamp) -> Notice? {
        let key = Key(kind: notice.kind, upstream: notice.upstream)
        guard var window = windows[key], now < window.end else {
            windows[key] = Window(end: now + every)
            return notice
        }
        if window.held == nil { window.held = notice } else { window.held?.fold(notice) }
        windows[key] = window
        return nil
    }

    /// Returns the held notices whose period is over. Each begins another period.
    package mutating func due(now: Timestamp) -> [Notice] {
        var notices: [Notice] = []
        for (key, window) in windows where now >= window.end {
            guard let held = window.held else {
                windows[key] = nil
                continue
            }
            notices.append(held)
            windows[key] = Window(end: now + every)
        }
        return notices
    }

    /// The first line of the outbox's log that a held notice rests on; nil without one.
    package var firstHeldLine: Int64? { windows.values.compactMap { $0.held?.line }.min() }
}

/// One measurement of a running server.
package struct NoticeReadings: Sendable {
    /// The oldest waiting write; nil without one.
    package var oldest: (id: String, upstream: String, age: TimeSpan, error: String?)?
    package var dataBytes: Int64 = 0
    package var dataLimitBytes: Int64 = 0
    /// The faults of stores that refuse writes, in words.
    package var faults: [String] = []
    /// Upstreams without an answer, with the time since then.
    package var absent: [(upstream: String, time: TimeSpan, error: String?)] = []

    /// Routes that pause after mass refusals.
    package var pausedRoutes: [(upstream: String, pause: RoutePause)] = []

    package init() {}

    /// Returns a notice for each limit of `rule` that is exceeded.
    package func notices(for rule: NoticeRule) -> [Notice] {
        var notices: [Notice] = []
        if rule.on.contains(.oldestPending), let oldest, oldest.age >= rule.oldestPending {
            var notice = Notice(.oldestPending, upstream: oldest.upstream)
            notice.operations = [oldest.id]
            notice.measure = "has waited for \(oldest.age.rounded)"
            notice.cause = oldest.error
            notices.append(notice)
        }
        if rule.on.contains(.storage) {
            let percent = dataLimitBytes > 0 ? dataBytes * 100 / dataLimitBytes : 0
            if let fault = faults.first {
                var notice = Notice(.storage)
                notice.measure = fault
                notices.append(notice)
            } else if percent >= Int64(rule.storagePercent) {
                var notice = Notice(.storage)
                notice.measure = "The state directory holds \(percent)% of storage.data_limit"
                notices.append(notice)
            }
        }
        if rule.on.contains(.away) {
            for absence in absent where absence.time >= rule.away {
                var notice = Notice(.away, upstream: absence.upstream)
                notice.measure = "has not answered for \(absence.time.rounded)"
                notice.cause = absence.error
                notices.append(notice)
            }
        }
        if rule.on.contains(.massRefusal) {
            for (upstream, pause) in pausedRoutes {
                var notice = Notice(.massRefusal, upstream: upstream)
                notice.measure = pause.route
                notice.cause = "different writes met \(pause.cause)"
                notices.append(notice)
            }
        }
        return notices
    }
}

extension TimeSpan {
    /// The duration in whole seconds or minutes, for people.
    fileprivate var rounded: TimeSpan {
        seconds < 120 ? .seconds(seconds) : .minutes(seconds / 60)
    }
}

/// The limits that were exceeded at the last measurement.
package struct StandingNotices: Sendable {
    private struct Key: Hashable {
        var kind: NoticeKind?
        var upstream: String?
    }

    private var standing: Set<Key> = []

    package init() {}

    /// Returns the notices of limits that are exceeded now and were not before.
    package mutating func news(_ notices: [Notice]) -> [Notice] {
        let keys = notices.map { Key(kind: $0.kind, upstream: $0.upstream) }
        defer { standing = Set(keys) }
        return zip(notices, keys).filter { !standing.contains($0.1) }.map(\.0)
    }
}

// MARK: - Webhooks

/// Signs the body of a message with the receiver's secrets (docs/outbox.md#messages; Standard Webhooks 1.0.0).
package struct WebhookSignature: Sendable {
    /// Secrets of one file; two are enough to change one.
    package static let secretLimit = 8
    private static let prefix = "whsec_"

    let keys: [[UInt8]]
    let code: @Sendable ([UInt8], [UInt8]) -> [UInt8]

    /// - Parameters:
    ///   - text: One secret a line: `whsec_` and base64, or any other text, whose bytes are the key.
    ///   - code: Returns the HMAC-SHA256 of a message with a key.
    /// - Returns: nil if there is no secret, or one that is not base64 after `whsec_`.
    package init?(secrets text: String, code: @escaping @Sendable (_ message: [UInt8], _ key: [UInt8]) -> [UInt8]) {
        let lines = text.split(whereSeparator: \.isNewline).map(Self.trimmed).filter { !$0.isEmpty }.prefix(Self.secretLimit)
        let keys = lines.map { $0.hasPrefix(Self.prefix) ? Base64.decode(String($0.dropFirst(Self.prefix.count))) : Array($0.utf8) }
        guard !keys.isEmpty, keys.allSatisfy({ $0?.isEmpty == false }) else { return nil }
        self.keys = keys.compactMap(\.self)
        self.code = code
    }

    private static func trimmed(_ line: Substring) -> Substring {
        let end = line.lastIndex { !$0.isWhitespace }.map(line.index(after:)) ?? line.startIndex
        return line[..<end].drop(while: \.isWhitespace)
    }

    /// The fields of one sending. The time is that of the sending: receivers refuse old ones.
    package func fields(id: String, at moment: Timestamp, body: [UInt8]) -> HTTPFields {
        let time = "\(moment.milliseconds / 1000)"
        let message = Array("\(id).\(time).".utf8) + body
        let signatures = keys.map { "v1," + Base64.encode(code(message, $0)) }
        return [.webhookID: id, .webhookTimestamp: time, .webhookSignature: signatures.joined(separator: " ")]
    }
}

/// The check of a signed message by its receiver (Standard Webhooks, version 1.0.0).
extension WebhookSignature {
    /// The largest difference between the time of sending and the receiver's clock: an older message may be a copy.
    package static let tolerance = TimeSpan.minutes(5)

    /// Bytes of the signatures of a message at most.
    private static let fieldLimit = Int.kib(4)

    /// The reason why a message is not accepted.
    package enum Doubt: Error, Hashable, CustomStringConvertible {
        case unsigned, wrong
        /// Seconds by which the sender's clock, or a repeated message, is off.
        case time(Int64)

        package var description: String {
            switch self {
            case .unsigned: "webhook-id, webhook-timestamp and webhook-signature are needed"
            case .wrong: "the signature was not made with a secret of this site"
            case .time(let seconds): "it was signed \(seconds) s away from this clock; check the clock of the sender"
            }
        }
    }

    /// Returns the id and the time of sending of a message that one of the secrets has signed.
    package func verify(_ fields: HTTPFields, body: [UInt8], now: Timestamp) throws(Doubt) -> (id: String, sentAt: Timestamp) {
        guard let id = fields[.webhookID], (1...256).contains(id.utf8.count), let time = fields[.webhookTimestamp],
            let seconds = Int64(time), (0...253_402_300_799).contains(seconds), let given = fields[.webhookSignature],
            given.utf8.count <= Self.fieldLimit
        else { throw .unsigned }
        let message = Array("\(id).\(time).".utf8) + body
        let signatures = given.split(separator: " ").compactMap { $0.hasPrefix("v1,") ? Base64.decode(String($0.dropFirst(3))) : nil }
        guard keys.contains(where: { key in signatures.contains { Self.areEqual($0, code(message, key)) } }) else { throw .wrong }
        let sentAt = Timestamp(milliseconds: seconds * 1000)
        let difference = (now - sentAt).magnitude
        guard difference <= Self.tolerance else { throw .time(difference.seconds) }
        return (id, sentAt)
    }

    /// Compares in a time that depends on the length alone.
    private static func areEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
        a.count == b.count && zip(a, b).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }
}

/// The kind of a receiver. Its name prefixes that of the upstream, which a configured name cannot imitate: it holds a colon.
package enum ReceiverKind: String, CaseIterable, Sendable {
    case webhook, callback
    /// A collector of the reports of sites.
    case report

    /// The name under which the outbox keeps messages to `origin`.
    package func upstreamName(of origin: OriginAddress) -> String { "\(rawValue):\(origin.url)" }

    /// The kind of the receiver with this name; nil for an ordinary upstream.
    package init?(upstream name: String) {
        guard let colon = name.firstIndex(of: ":"), let kind = ReceiverKind(rawValue: String(name[..<colon])),
            name[colon...].hasPrefix(":http")
        else { return nil }
        self = kind
    }
}
