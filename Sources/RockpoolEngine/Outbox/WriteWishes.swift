// What a client asks of a write beside the write itself; these fields never reach the upstream (docs/reference/headers.md#request-fields,
// RFC 7240).
import HTTPTypes
import RockpoolCore

/// The client's wishes for one request; reads only lose their fields here.
struct WriteWishes: Equatable {
    enum Policy: String { case queue, noQueue = "no-queue", requireRemote = "require-remote" }

    /// Operations one may wait for.
    static let dependencyLimit = 100
    /// Bytes of a group's name.
    static let groupLimit = 200

    private(set) var policy = Policy.queue
    /// −100…100, lower goes first.
    private(set) var priority = 0
    private(set) var expiresAt: Timestamp?
    /// `Prefer: respond-async`: 202 at once.
    private(set) var respondsAsync = false
    /// `Prefer: wait=N`: how long to hold on for the real answer.
    private(set) var wait: Duration?

    /// Operations it is to wait for, by id.
    private(set) var dependsOn: [String] = []
    /// Operations of one group go in the order they came.
    private(set) var group: String?
    /// Never joined with another.
    private(set) var noMerge = false

    /// Reads the wishes and removes the fields that are ours.
    ///
    /// Throws `Refusal` (400) for a value that cannot be honoured: guessing what a write is to do helps nobody.
    init(taking fields: inout HTTPFields, now: Timestamp) throws(Refusal) {
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
        takePreferences(&fields)
        fields = HTTPFields(fields.filter { !$0.name.canonicalName.hasPrefix("rockpool-") })
    }

    /// Ours are taken; the upstream sees what else is preferred.
    private mutating func takePreferences(_ fields: inout HTTPFields) {
        var others: [Substring] = []
        for preference in fields[values: .prefer].flatMap({ $0.split(separator: ",") }) {
            // Parameters of a preference say nothing to us; a value may be quoted (RFC 7240 §2).
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

    private static func refusal(_ field: String, _ expected: String) -> Refusal { .badRequest("\(field) takes \(expected)") }
}
