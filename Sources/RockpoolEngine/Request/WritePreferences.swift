// The client's `Rockpool-` fields and `Prefer` for one write; they are removed before the request is sent to the upstream
// (docs/reference/headers.md#request-fields, RFC 7240).
import HTTPTypes
import RockpoolCore

/// The client's options for one request. From a read the fields are only removed.
struct WritePreferences: Equatable {
    enum Policy: String { case queue, noQueue = "no-queue", requireRemote = "require-remote" }

    /// Maximum number of operations that one may depend on.
    static let dependencyLimit = 100
    /// Maximum length of a callback's URL in bytes.
    static let callbackLimit = 2048
    /// Maximum length of a group's name in bytes.
    static let groupLimit = 200

    private(set) var policy = Policy.queue
    /// −100…100; lower values are sent first.
    private(set) var priority = 0
    private(set) var expiresAt: Timestamp?
    /// `Prefer: respond-async`: 202 at once.
    private(set) var respondsAsync = false
    /// `Prefer: wait=N`: the time to wait for the upstream's response.
    private(set) var wait: Duration?

    /// Ids of the operations it must wait for.
    private(set) var dependsOn: [String] = []
    /// Operations of one group are sent in the order they were accepted.
    private(set) var group: String?
    /// True if it must never be squashed.
    private(set) var noMerge = false
    /// The URL to which its end is posted.
    private(set) var callback: String?

    /// No options.
    init() {}

    /// Parses the options and removes their fields.
    ///
    /// Throws `Refusal` (400) for a value that cannot be honoured, because a guess could execute the write in a way its client did not
    /// want.
    /// - Parameter callbacks: the origins that a callback may be posted to.
    init(taking fields: inout HTTPFields, now: Timestamp, callbacks: [OriginAddress] = []) throws(Refusal) {
        guard fields.contains(where: { $0.name == .prefer || $0.name.canonicalName.hasPrefix("rockpool-") }) else { return }
        if let value = fields[.rockpoolPolicy] {
            guard let policy = Policy(rawValue: value.lowercased()) else {
                throw Self.refusal("Rockpool-Policy", "queue, no-queue or require-remote")
            }
            self.policy = policy
        }
        if let value = fields[.rockpoolPriority] {
            guard let priority = Int(value), (-100...100).contains(priority) else { throw Self.refusal("Rockpool-Priority", "-100 to 100") }
            self.priority = priority
        }
        if let value = fields[.rockpoolExpires] {
            let seconds = Int64(value).flatMap { $0 >= 0 ? now + .seconds($0) : nil }
            guard let moment = seconds ?? HTTPDate.parse(value) else { throw Self.refusal("Rockpool-Expires", "seconds or an HTTP date") }
            expiresAt = moment
        }
        dependsOn = fields[values: .rockpoolDependsOn].flatMap { $0.split { $0 == "," || $0 == " " }.map { String($0) } }
        guard dependsOn.count <= Self.dependencyLimit else {
            throw Self.refusal("Rockpool-Depends-On", "\(Self.dependencyLimit) operations at most")
        }
        group = fields[.rockpoolGroup]
        guard (group?.utf8.count ?? 0) <= Self.groupLimit else { throw Self.refusal("Rockpool-Group", "\(Self.groupLimit) bytes at most") }
        if let value = fields[.rockpoolNoMerge]?.lowercased() {
            guard value == "true" || value == "false" else { throw Self.refusal("Rockpool-No-Merge", "true or false") }
            noMerge = value == "true"
        }
        callback = try fields[.rockpoolCallback].map { text throws(Refusal) in try Self.callback(text, allowed: callbacks) }
        // Each write with a callback has an end of its own.
        if callback != nil { noMerge = true }
        takePreferences(&fields)
        fields = HTTPFields(fields.filter { !$0.name.canonicalName.hasPrefix("rockpool-") })
    }

    /// Takes the handled preferences; all others remain for the upstream.
    private mutating func takePreferences(_ fields: inout HTTPFields) {
        var others: [Substring] = []
        for preference in fields[values: .prefer].flatMap({ $0.split(separator: ",") }) {
            // The parameters of a preference are ignored; its value may be quoted (RFC 7240 §2).
            let parts = preference.prefix { $0 != ";" }.filter { !" \t\"".contains($0) }.lowercased().split(separator: "=")
            if parts.first == "respond-async" {
                respondsAsync = true
            } else if parts.first == "wait", parts.count == 2, let seconds = Int64(parts[1]) {
                wait = .seconds(min(max(seconds, 0), 60))
            } else {
                others.append(preference.drop { $0 == " " })
            }
        }
        if respondsAsync || wait != nil { fields[.prefer] = others.isEmpty ? nil : others.joined(separator: ", ") }
    }

    /// Returns the URL of a callback. Throws `Refusal`: 400 for anything but a URL, 403 for an origin that the operator has not allowed.
    private static func callback(_ text: String, allowed: [OriginAddress]) throws(Refusal) -> String {
        guard text.utf8.count <= callbackLimit, let head = try? RequestHead(url: text) else {
            throw refusal("Rockpool-Callback", "one http or https URL of at most \(callbackLimit) bytes")
        }
        guard allowed.contains(head.origin) else {
            let detail = "Rockpool-Callback: \(head.origin.url) is not among callbacks.origins of the configuration"
            throw Refusal(status: 403, problem: "forbidden-target", detail: detail)
        }
        return head.url
    }

    private static func refusal(_ field: String, _ expected: String) -> Refusal { .badRequest("\(field) takes \(expected)") }
}
