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

extension String {
    fileprivate var trimmedStart: Substring { drop { $0 == " " } }
    fileprivate var trimmedEnd: String {
        var rest = self[...]
        while rest.last == " " { rest.removeLast() }
        return String(rest)
    }
}
