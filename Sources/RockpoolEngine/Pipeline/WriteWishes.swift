// What a client asks of a write beside the write itself; these fields never reach the upstream (contract §3, RFC 7240).
import HTTPTypes
import RockpoolCore

/// The client's wishes for one request; reads only lose their fields here.
struct WriteWishes: Equatable {
    enum Policy: String { case queue, noQueue = "no-queue", requireRemote = "require-remote" }

    private(set) var policy = Policy.queue
    /// −100…100, lower goes first.
    private(set) var priority = 0
    private(set) var expiresAt: Timestamp?
    /// `Prefer: respond-async`: 202 at once.
    private(set) var respondsAsync = false
    /// `Prefer: wait=N`: how long to hold on for the real answer.
    private(set) var wait: Duration?

    /// Reads the wishes and removes their fields.
    init(taking fields: inout HTTPFields, now: Timestamp) {
        if let value = fields[.rockpoolPolicy] { policy = Policy(rawValue: value.lowercased()) ?? .queue }
        if let value = fields[.rockpoolPriority].flatMap({ Int($0) }) { priority = min(100, max(-100, value)) }
        if let value = fields[.rockpoolExpires] {
            expiresAt = Int64(value).map { now + .seconds(max(0, $0)) } ?? HTTPDate.parse(value)
        }
        for preference in fields[values: .prefer].flatMap({ $0.split(separator: ",") }) {
            let parts = preference.filter { $0 != " " && $0 != "\t" }.lowercased().split(separator: "=")
            if parts.first == "respond-async" { respondsAsync = true }
            if parts.first == "wait", parts.count == 2, let seconds = Int64(parts[1]) { wait = .seconds(min(max(seconds, 0), 60)) }
        }
        let own = fields.filter { !$0.name.canonicalName.hasPrefix("rockpool-") }
        fields = HTTPFields(own)
    }
}
