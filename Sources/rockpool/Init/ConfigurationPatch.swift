// A proposal as a unified diff to the configuration file, which `patch` takes (docs/reference/cli.md#learn).
import RockpoolCore

/// Lines to insert into a YAML file.
struct ConfigurationPatch {
    let file: String
    private var hunks: [(line: Int, added: [String])] = []
    private let lines: [String]

    /// - Parameter text: the file as it is.
    init(file: String, text: String) {
        self.file = file
        lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    /// Adds resources to the upstream whose `name` is on this line (from 1). False where the file's form leaves no place: in flow style.
    mutating func add(_ resources: [ProposedResource], toUpstreamAt line: Int, resourcesAt: Int?) -> Bool {
        guard lines.indices.contains(line - 1), let dash = start(of: line - 1) else { return false }
        let inner = dash.column + 2
        if let resourcesAt {
            // Behind `resources:`, as the items that are there are indented.
            guard lines.indices.contains(resourcesAt), lines[resourcesAt - 1].trimmedEnd.hasSuffix("resources:") else { return false }
            let column = lines[resourcesAt...].first { $0.trimmedStart.hasPrefix("- ") }.map(Self.indentation) ?? inner + 2
            hunks.append((resourcesAt, resources.flatMap { ProposedConfiguration.lines(of: $0, indentation: column) }))
            return true
        }
        var end = dash.index + 1
        while end < lines.count, lines[end].trimmedStart.isEmpty || Self.indentation(lines[end]) > dash.column { end += 1 }
        while end > dash.index + 1, lines[end - 1].trimmedStart.isEmpty || lines[end - 1].trimmedStart.hasPrefix("#") { end -= 1 }
        let head = String(repeating: " ", count: inner) + "resources:"
        hunks.append((end, [head] + resources.flatMap { ProposedConfiguration.lines(of: $0, indentation: inner + 2) }))
        return true
    }

    /// The line of the upstream's `- `, at or above a line of it; nil in flow style.
    private func start(of index: Int) -> (index: Int, column: Int)? {
        var column = Self.indentation(lines[index])
        for at in stride(from: index, through: 0, by: -1) {
            let text = lines[at].trimmedStart
            if text.contains("{") && at == index { return nil }
            if text.hasPrefix("- "), Self.indentation(lines[at]) <= column { return (at, Self.indentation(lines[at])) }
            if !text.isEmpty, !text.hasPrefix("#") { column = min(column, Self.indentation(lines[at])) }
        }
        return nil
    }

    /// Reads the file as the diff makes it.
    /// - Parameter resources: what the diff adds, by the name of the upstream.
    /// - Throws: a failure if anything else would change.
    func check(adds resources: [String: [ProposedResource]], to before: Configuration) throws {
        let sources = ConfigurationSources(file: file, environment: [:])
        var (old, new) = (before, try sources.load(yaml: patched, named: file).configuration)
        var meant: [String: Set<Resource>] = [:]
        for index in old.upstreams.indices {
            let upstream = old.upstreams[index]
            let added = try (resources[upstream.name] ?? []).map { try $0.declared() }
            meant[upstream.name] = Set(upstream.resources + added)
            old.upstreams[index].resources = []
        }
        let found = Dictionary(new.upstreams.map { ($0.name, Set($0.resources)) }) { first, _ in first }
        for index in new.upstreams.indices { new.upstreams[index].resources = [] }
        guard old == new, found == meant else {
            throw CommandFailure(.failed, "\(file) would not mean what is proposed; nothing is proposed".inOneLine)
        }
    }

    /// The file with the lines of the diff.
    var patched: String {
        var all = lines
        for hunk in hunks.sorted(by: { $0.line > $1.line }) { all.insert(contentsOf: hunk.added, at: min(hunk.line, all.count)) }
        return all.joined(separator: "\n")
    }

    /// The diff; empty without hunks.
    var text: String {
        guard !hunks.isEmpty else { return "" }
        var shift = 0
        let body = hunks.sorted { $0.line < $1.line }.map { hunk in
            let before = lines[max(0, hunk.line - 1)]
            defer { shift += hunk.added.count }
            let place = "@@ -\(hunk.line),1 +\(hunk.line + shift),\(hunk.added.count + 1) @@"
            return ([place, " " + before] + hunk.added.map { "+" + $0 }).joined(separator: "\n")
        }
        return (["--- \(file)", "+++ \(file)"] + body).joined(separator: "\n") + "\n"
    }

    private static func indentation(_ line: String) -> Int { line.prefix { $0 == " " }.count }
}

extension ProposedResource {
    /// The resource as the configuration has it.
    fileprivate func declared() throws -> Resource {
        let upstream = ConfigDocument.map([
            .init("name", .text("api")), .init("origin", .text("https://api.example.com")), .init("resources", .list([document])),
        ])
        let text = ConfigDocument.map([.init("upstreams", .list([upstream]))]).json()
        let read = try ConfigurationSources(environment: [:]).load(yaml: text, named: "the proposal").configuration.upstreams
        guard let resource = read.first?.resources.first else {
            throw CommandFailure(.failed, "\(collection) cannot be declared".inOneLine)
        }
        return resource
    }
}

extension String {
    fileprivate var trimmedStart: Substring { drop { $0 == " " } }
    fileprivate var trimmedEnd: String {
        var rest = self[...]
        while rest.last == " " { rest.removeLast() }
        return String(rest)
    }
}
