// The writes of the outbox in groups (docs/reference/cli.md#outbox-summary).
import RockpoolCore

struct OutboxSummary: TabularReport, Encodable, Equatable {
    struct Group: Codable, Hashable {
        var upstream: String
        /// The name of the client's identity; nil without a credential.
        var client: String?
        var method: String
        /// The path, with `*` in place of each id.
        var path: String
        var state: String
    }

    struct Row: Codable, Equatable {
        var group: Group
        var writes: Int
        var bodyBytes: Int64
        var oldest: String?
        /// The program that sent one of them, as it calls itself.
        var userAgent: String?
    }

    var items: [Row]

    init(of operations: [OperationReport]) {
        var rows: [Group: Row] = [:]
        for operation in operations {
            let group = Group(
                upstream: operation.upstream ?? "–", client: operation.client, method: operation.method, path: Self.path(of: operation.url),
                state: operation.state)
            var row = rows[group] ?? Row(group: group, writes: 0, bodyBytes: 0, oldest: operation.acceptedAt)
            row.writes += 1
            row.bodyBytes += operation.bodyBytes ?? 0
            row.userAgent = row.userAgent ?? operation.userAgent
            row.oldest = [row.oldest, operation.acceptedAt].compactMap(\.self).min()
            rows[group] = row
        }
        items = rows.values.sorted { ($0.bodyBytes, $0.writes, $1.group.path) > ($1.bodyBytes, $1.writes, $0.group.path) }
    }

    var emptyNote: String? { "no operations" }

    var tables: [TextTable] {
        let total = "\(items.reduce(0) { $0 + $1.writes }.counted("write")), \(ForPeople.bytes(items.reduce(0) { $0 + $1.bodyBytes }))"
        guard !items.isEmpty else { return [] }
        return [
            TextTable(
                columns: [
                    .number("WRITES"), .number("BODIES"), .text("STATE"), .text("UPSTREAM"), .text("REQUEST"), .text("OLDEST"),
                    .text("PROGRAM"), .text("CLIENT"),
                ],
                rows: items.map { row in
                    [
                        "\(row.writes)", .init(ForPeople.bytes(row.bodyBytes)), .init(row.group.state), .init(row.group.upstream),
                        "\(row.group.method) \(row.group.path)", .init(ForPeople.age(row.oldest)),
                        .init(row.userAgent ?? "–"), .init(row.group.client ?? "–"),
                    ]
                }),
            .facts([("all", .init(total))]),
        ]
    }

    /// The path of a URL without its query, with `*` for segments that contain a digit: ids, in every common form.
    private static func path(of url: String) -> String {
        let start = url.firstRange(of: "://").map { url[$0.upperBound...].firstIndex(of: "/") ?? url.endIndex } ?? url.startIndex
        let segments = url[start...].prefix { $0 != "?" }.split(separator: "/", omittingEmptySubsequences: false)
        return segments.enumerated().map { index, segment in
            let isVersion = segment.count <= 3 && segment.first == "v"
            return segment.contains(where: \.isNumber) && !isVersion ? "*" : String(segment)
        }.joined(separator: "/")
    }
}
