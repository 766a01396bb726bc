// Every reference to a page below docs/, and every link between Markdown files, leads to a page and a heading that exist.
import Foundation
import Testing

@Suite struct SpecReferenceTests {
    private static let folders = ["Sources", "Tests", "Benchmarks", "Config", "docs"]
    private static let pages = ["README.md", "SECURITY.md", "CONTRIBUTING.md"]
    /// Extensions of hand-written files; a file without an extension is a script.
    private static let kinds: Set<String> = ["swift", "md", "py", "c", "h", "js", "css", "html", "yaml", "service", "socket", "1", ""]

    /// Path and text of every file that may contain references.
    private static let files: [(path: String, text: String)] = {
        let paths = folders.flatMap(Repository.files(below:)).filter { path in
            !path.hasPrefix("Tests/Fuzz/corpus/") && kinds.contains(URL(filePath: path).pathExtension)
        }
        return (paths + pages).compactMap { path in (try? Repository.text(of: path)).map { (path, $0) } }
    }()

    /// One reference: the page as a path from the repository's root, and the anchor within the page.
    private struct Reference: Hashable {
        var page: String
        var anchor: String?

        init(page: String, anchor: some StringProtocol) {
            self.page = page
            self.anchor = anchor.isEmpty ? nil : String(anchor)
        }
    }

    @Test func everyReferenceToAPageLeadsSomewhere() {
        #expect(Self.files.count > 500)
        for (path, text) in Self.files {
            for reference in Self.references(in: text) { Self.check(reference, in: path) }
        }
    }

    @Test func everyLinkOfAPageLeadsSomewhere() {
        for (path, text) in Self.files where path.hasSuffix(".md") {
            for target in text.components(separatedBy: "](").dropFirst().map({ $0.prefix { $0 != ")" && $0 != " " && $0 != "\n" } }) {
                guard !target.contains("://"), !target.hasPrefix("mailto:") else { continue }
                let parts = target.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
                let page = parts[0].isEmpty ? path : Self.resolved(String(parts[0]), from: path)
                Self.check(Reference(page: page, anchor: parts.count > 1 ? parts[1] : ""), in: path)
            }
        }
    }

    @Test func everySourceFileThatAPageNamesExists() {
        let paths = Set(Repository.files(below: "Sources") + Repository.files(below: "Tests"))
        let isNamed = /`([A-Za-z0-9+\/]+\/[A-Za-z0-9+]+\.swift)`/
        var count = 0
        for (page, text) in Self.files where page.hasSuffix(".md") && !page.hasPrefix("Benchmarks/") {
            for match in text.matches(of: isNamed) {
                let path = String(match.output.1)
                #expect(paths.contains(path) || paths.contains("Sources/" + path), "\(page) names \(path), which does not exist")
                count += 1
            }
        }
        #expect(count > 100)
    }

    @Test(arguments: ["outbox.md", "contract", "storage.md", "security.md", "design"])
    func noReferenceToTheOldNotesIsLeft(_ note: String) {
        let form = note + " §"
        #expect(Self.files.filter { $0.text.contains(form) }.map(\.path) == [])
    }

    @Test func noReferenceToTheOldListOfFeaturesIsLeft() {
        let form = "features " + "K3"
        #expect(Self.files.filter { $0.text.contains(form) }.map(\.path) == [])
    }

    /// Returns the pages below docs/ named in a text, each with the anchor that follows. A URL that contains `docs/` does not count.
    private static func references(in text: String) -> [Reference] {
        let pieces = text.components(separatedBy: "docs/")
        return zip(pieces, pieces.dropFirst()).compactMap { before, behind in
            if let last = before.last, last.isLetter || last.isNumber || "/_-.".contains(last) { return nil }
            let path = behind.prefix { $0.isLetter || $0.isNumber || "/_-.".contains($0) }
            guard let end = path.firstRange(of: ".md")?.upperBound else { return nil }
            let rest = behind[end...]
            let anchor = rest.first == "#" ? rest.dropFirst().prefix { $0.isLetter || $0.isNumber || "_-".contains($0) } : ""
            return Reference(page: "docs/" + path[..<end], anchor: anchor)
        }
    }

    private static func check(_ reference: Reference, in path: String) {
        guard FileManager.default.fileExists(atPath: Repository.root.appending(path: reference.page).path) else {
            Issue.record("\(path) refers to \(reference.page), which does not exist")
            return
        }
        guard let anchor = reference.anchor, let text = try? Repository.text(of: reference.page) else { return }
        #expect(anchors(of: text).contains(anchor), "\(path): \(reference.page) has no heading #\(anchor)")
    }

    /// Resolves a relative link of a page to a path from the repository's root.
    private static func resolved(_ link: String, from page: String) -> String {
        var parts = page.split(separator: "/").dropLast().map(String.init)
        for part in link.split(separator: "/") where part != "." {
            if part == ".." { _ = parts.popLast() } else { parts.append(String(part)) }
        }
        return parts.joined(separator: "/")
    }

    /// Returns the anchors that GitHub gives to the headings of a page: lower case, punctuation dropped, spaces as hyphens, duplicates
    /// numbered.
    private static func anchors(of text: String) -> Set<String> {
        var (seen, anchors, isCode) = ([String: Int](), Set<String>(), false)
        for line in text.split(separator: "\n") {
            if line.hasPrefix("```") { isCode.toggle() }
            let level = line.prefix { $0 == "#" }.count
            guard !isCode, (1...6).contains(level), line.dropFirst(level).first == " " else { continue }
            let kept = line.dropFirst(level + 1).lowercased().filter { $0.isLetter || $0.isNumber || " -_".contains($0) }
            let anchor = kept.replacing(" ", with: "-")
            let count = seen[anchor, default: 0]
            seen[anchor] = count + 1
            anchors.insert(count == 0 ? anchor : "\(anchor)-\(count)")
        }
        return anchors
    }
}
