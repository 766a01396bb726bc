// A configuration file with one upstream more or less (docs/reference/cli.md#add). All other lines stay as they are, comments too.
import Foundation
import RockpoolCore

/// The text of a configuration, to which upstreams are added and from which they are taken.
struct ConfigurationEdit {
    let file: String
    /// The text before.
    let text: String

    init(text: String, named file: String) { (self.file, self.text) = (file, text) }

    /// Reads the file; a file that is not there is empty.
    init(file: String) throws(CommandFailure) {
        self.file = file
        guard access(file, F_OK) == 0 else {
            text = ""
            return
        }
        guard let data = FileManager.default.contents(atPath: file), let text = String(data: data, encoding: .utf8) else {
            throw CommandFailure(.failed, "\(file) cannot be read: \(String(cString: strerror(errno)))".inOneLine)
        }
        self.text = text
    }

    /// Returns the text with another upstream.
    /// - Parameter lines: the upstream as an entry of a list, in the column of its dash.
    /// - Throws: a failure if the file has no place for lines, or would not mean what it did and the upstream beside it.
    func adding(_ lines: [String]) throws -> String {
        let declared = try Self.read((["upstreams:"] + lines).joined(separator: "\n"), named: file)
        var meant = try Self.read(text, named: file)
        meant.upstreams += declared.upstreams
        let edited = try inserting(lines)
        try check(edited, means: meant)
        return edited
    }

    /// Returns the text without an upstream, and the lines that it lacks then: those of the upstream with the comments about it.
    /// - Throws: a failure if the upstreams have no lines of their own, or if the file would mean anything else than without it.
    func removing(_ name: String) throws -> (text: String, lines: [String]) {
        var meant = try Self.read(text, named: file)
        var lines = Self.lines(of: text)
        guard let index = meant.upstreams.firstIndex(where: { $0.name == name }) else { return (text, []) }
        guard let list = UpstreamLines(of: lines), list.entries.count == meant.upstreams.count else {
            throw CommandFailure.inOneLine(file)
        }
        meant.upstreams.remove(at: index)
        let removed = Array(lines[list.entries[index]])
        lines.removeSubrange(list.entries[index])
        let edited = lines.joined(separator: lineEnd)
        try check(edited, means: meant)
        return (edited, removed.filter { !$0.isEmpty })
    }

    private func check(_ edited: String, means meant: Configuration) throws {
        guard try Self.read(edited, named: file) == meant else {
            throw CommandFailure(.failed, "\(file) would not mean what is meant with this change; nothing is changed".inOneLine)
        }
    }

    /// The lines that are new in `edited`, for people.
    func added(in edited: String) -> [String] {
        let difference = Self.lines(of: edited).difference(from: Self.lines(of: text))
        return difference.insertions.compactMap { if case .insert(_, let line, _) = $0, !line.isEmpty { line } else { nil } }
    }

    private static func read(_ text: String, named file: String) throws(ConfigurationError) -> Configuration {
        try ConfigurationSources(file: file, environment: [:]).load(yaml: text, named: file).configuration
    }

    private static func lines(of text: String) -> [String] {
        text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }.map(String.init)
    }

    /// What ends the lines of the file.
    private var lineEnd: String { text.contains("\r\n") ? "\r\n" : "\n" }

    private func inserting(_ entry: [String]) throws(CommandFailure) -> String {
        var lines = Self.lines(of: text)
        while lines.last?.isEmpty == true { lines.removeLast() }
        if lines.first(where: { !UpstreamLines.isBlank($0) })?.drop(while: { $0 == " " }).hasPrefix("{") == true { throw .inOneLine(file) }
        guard let key = UpstreamLines.key(in: lines) else {
            return (lines + ["upstreams:"] + Self.indented(entry, by: 2) + [""]).joined(separator: lineEnd)
        }
        let value = lines[key].dropFirst("upstreams:".count).prefix { $0 != "#" }.filter { $0 != " " }
        guard ["", "[]", "null", "~"].contains(value) else { throw .inOneLine(file) }
        var (end, column) = (key + 1, 2)
        if value.isEmpty, let list = UpstreamLines(of: lines), let last = list.entries.last {
            (end, column) = (last.upperBound, list.column)
        } else if let comment = lines[key].firstIndex(of: "#") {
            lines[key] = "upstreams:  " + lines[key][comment...]
        } else {
            lines[key] = "upstreams:"
        }
        lines.insert(contentsOf: Self.indented(entry, by: column), at: end)
        return (lines + [""]).joined(separator: lineEnd)
    }

    private static func indented(_ lines: [String], by columns: Int) -> [String] {
        lines.map { $0.isEmpty ? $0 : String(repeating: " ", count: columns) + $0 }
    }
}

/// The list of upstreams in the lines of a file, each upstream in lines of its own.
private struct UpstreamLines {
    /// The column of the dashes.
    let column: Int
    /// The lines of each upstream, with the comments about it: those directly above it in the column of its dash, and those below it that
    /// are indented more.
    let entries: [Range<Int>]

    /// Nil where the key has no list below it, or a list in one line.
    init?(of lines: [String]) {
        guard let key = Self.key(in: lines), var dash = lines[(key + 1)...].firstIndex(where: { !Self.isBlank($0) }) else { return nil }
        let column = Self.indentation(lines[dash])
        var entries: [Range<Int>] = []
        while dash < lines.count, Self.isDash(lines[dash], in: column) {
            let next = lines[(dash + 1)...].firstIndex { !Self.isBlank($0) && Self.indentation($0) <= column } ?? lines.count
            let end = lines[dash..<next].lastIndex { !Self.isBlank($0) || Self.isComment($0) && Self.indentation($0) > column } ?? dash
            let above = entries.last?.upperBound ?? key + 1
            let isAbout = { (line: String) in Self.isComment(line) && Self.indentation(line) == column }
            let start = lines[above..<dash].lastIndex { !isAbout($0) }.map { $0 + 1 } ?? above
            entries.append(start..<end + 1)
            dash = next
        }
        guard !entries.isEmpty else { return nil }
        (self.column, self.entries) = (column, entries)
    }

    static func key(in lines: [String]) -> Int? { lines.firstIndex { $0.hasPrefix("upstreams:") } }

    /// True for an empty line and for a comment.
    static func isBlank(_ line: String) -> Bool { line.drop { $0 == " " || $0 == "\t" }.isEmpty || isComment(line) }

    private static func isComment(_ line: String) -> Bool { line.drop { $0 == " " || $0 == "\t" }.hasPrefix("#") }

    private static func isDash(_ line: String, in column: Int) -> Bool {
        let rest = line.dropFirst(column)
        return indentation(line) == column && (rest == "-" || rest.hasPrefix("- "))
    }

    private static func indentation(_ line: String) -> Int { line.prefix { $0 == " " }.count }
}

extension ConfigurationEdit {
    private var target: String { URL(fileURLWithPath: file).resolvingSymlinksInPath().path }

    /// Checks that this user may put another file in the place of this one, which keeps its owner.
    func checkWritable() throws(CommandFailure) {
        var directory = (target as NSString).deletingLastPathComponent
        while access(directory, F_OK) != 0, directory.count > 1 { directory = (directory as NSString).deletingLastPathComponent }
        let owner = (try? FileManager.default.attributesOfItem(atPath: target))?[.ownerAccountID] as? NSNumber
        let isOthers = geteuid() != 0 && owner.map { $0.uint32Value != geteuid() } ?? false
        guard access(directory, W_OK | X_OK) == 0, !isOthers else {
            throw CommandFailure(.failed, "\(file) may not be changed by this user".inOneLine)
        }
    }

    /// Puts a text in the place of the file, which keeps its owner and its mode; whole, or not at all.
    func write(_ text: String) throws(CommandFailure) {
        let target = target
        let before = try? FileManager.default.attributesOfItem(atPath: target)
        if before == nil {
            try? FileManager.default.createDirectory(
                atPath: (target as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
        }
        let new = try NewFile(target, replacing: true)
        do {
            try new.write(text)
            if let mode = before?[.posixPermissions] as? NSNumber, let owner = (before?[.ownerAccountID] as? NSNumber)?.uint32Value,
                let group = (before?[.groupOwnerAccountID] as? NSNumber)?.uint32Value
            {
                guard chmod(new.path, mode.uint32Value) == 0,
                    (owner, group) == (geteuid(), getegid()) || chown(new.path, owner, group) == 0
                else { throw CommandFailure.cannotWrite(to: target) }
            }
            try new.finish()
        } catch {
            new.discard()
            throw error as? CommandFailure ?? CommandFailure(.failed, "\(error)".inOneLine)
        }
    }
}

extension CommandFailure {
    fileprivate static func inOneLine(_ file: String) -> CommandFailure {
        CommandFailure(
            .failed, "the upstreams of \(file) are in one line; write them as a list of lines, or change them there yourself".inOneLine)
    }
}
