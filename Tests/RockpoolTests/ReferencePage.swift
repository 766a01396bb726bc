// The pages of docs/reference as sections and tables, for the tests that compare them with the code.
import Foundation

/// Access to the files of the repository for the tests.
enum Repository {
    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    static func text(of path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    /// Returns the paths of the files below `folder`, relative to the repository.
    static func files(below folder: String) -> [String] {
        let names = (try? FileManager.default.subpathsOfDirectory(atPath: root.appending(path: folder).path)) ?? []
        return names.map { "\(folder)/\($0)" }.filter { path in
            var isDirectory: ObjCBool = false
            let isThere = FileManager.default.fileExists(atPath: root.appending(path: path).path, isDirectory: &isDirectory)
            return isThere && !isDirectory.boolValue
        }
    }

    /// Returns the Swift sources of these modules as one text.
    static func sources(of modules: [String]) throws -> String {
        try modules.flatMap { files(below: "Sources/\($0)") }.filter { $0.hasSuffix(".swift") }.map(text(of:)).joined(separator: "\n")
    }
}

/// One page of `docs/reference`.
struct ReferencePage {
    /// A table and the heading of its section.
    struct Table {
        var heading: String
        var columns: [String]
        var rows: [[String]]
    }

    /// A heading and the lines up to the next heading of any level.
    struct Section {
        var heading: String
        var level: Int
        var lines: [String]
    }

    let sections: [Section]

    init(_ name: String) throws {
        var sections = [Section(heading: "", level: 0, lines: [])]
        for line in try Repository.text(of: "docs/reference/\(name).md").split(separator: "\n", omittingEmptySubsequences: false) {
            let level = line.prefix { $0 == "#" }.count
            if level > 0, line.dropFirst(level).first == " " {
                sections.append(Section(heading: String(line.dropFirst(level + 1)), level: level, lines: []))
            } else {
                sections[sections.count - 1].lines.append(String(line))
            }
        }
        self.sections = sections
    }

    /// Every table of the page, in order.
    var tables: [Table] { sections.flatMap(\.tables) }

    /// Returns the tables whose first column has this name.
    func tables(of column: String) -> [Table] { tables.filter { $0.columns.first == column } }
}

extension ReferencePage.Section {
    var tables: [ReferencePage.Table] {
        var tables: [ReferencePage.Table] = []
        var isInside = false
        for line in lines {
            guard line.hasPrefix("|") else {
                isInside = false
                continue
            }
            let cells = line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
                .map { $0.trimmingCharacters(in: .whitespaces) }
            if !isInside {
                tables.append(ReferencePage.Table(heading: heading, columns: cells, rows: []))
                isInside = true
            } else if !cells.allSatisfy({ $0 == "---" }) {
                tables[tables.count - 1].rows.append(cells)
            }
        }
        return tables
    }
}

extension String {
    /// The texts between backticks, in order.
    var codes: [String] {
        split(separator: "`", omittingEmptySubsequences: false).enumerated().filter { $0.offset % 2 == 1 }.map { String($0.element) }
    }
}
