// What the pages tell people to type is accepted by the program: every configuration, and every command line.
import ArgumentParser
import Foundation
import Testing

@testable import rockpool

@Suite struct PageExampleTests {
    /// One block of a page in a fence, without the indentation of the list that it may stand in.
    private struct Block: CustomTestStringConvertible {
        let page: String
        let line: Int
        let language: String
        let text: String

        var testDescription: String { "\(page):\(line)" }
    }

    private static let pages: [(path: String, lines: [String])] = {
        let paths = Repository.files(below: "docs").filter { $0.hasSuffix(".md") } + ["README.md", "SECURITY.md", "CONTRIBUTING.md"]
        return paths.compactMap { path in
            (try? Repository.text(of: path)).map { (path, $0.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)) }
        }
    }()

    private static let blocks: [Block] = pages.flatMap { path, lines in
        var blocks: [Block] = [], begun: (line: Int, language: String, indent: Int)?, inside: [String] = []
        for (number, line) in lines.enumerated() {
            let fence = line.drop { $0 == " " }
            guard fence.hasPrefix("```") else {
                if let begun { inside.append(String(line.dropFirst(begun.indent))) }
                continue
            }
            if let open = begun {
                blocks.append(Block(page: path, line: open.line, language: open.language, text: inside.joined(separator: "\n")))
                (begun, inside) = (nil, [])
            } else {
                begun = (number + 1, String(fence.dropFirst(3)), line.count - fence.count)
            }
        }
        return blocks
    }

    @Test func configurationsAreAccepted() throws {
        let configurations = Self.blocks.filter { $0.language == "yaml" }
        #expect(configurations.count >= 15)
        for block in configurations {
            let lines = block.text.split(separator: "\n", omittingEmptySubsequences: false)
            let indent = lines.filter { !$0.isEmpty }.map { $0.prefix { $0 == " " }.count }.min() ?? 0
            let dedented = lines.map { $0.dropFirst(indent) }
            let whole = dedented.joined(separator: "\n")
            // Some show keys of an upstream alone.
            let upstream = "upstreams:\n  - name: api\n    origin: https://api.example.com\n"
            let sources = ConfigurationSources(environment: ["HOME": "/nowhere"])
            do {
                _ = try sources.load(yaml: whole, named: block.testDescription)
            } catch {
                let part = upstream + dedented.map { "    \($0)" }.joined(separator: "\n")
                if (try? sources.load(yaml: part, named: block.testDescription)) == nil {
                    Issue.record("\(block.testDescription): \(error)")
                }
            }
        }
    }

    @Test func commandLinesAreAccepted() {
        let lines = Self.pages.flatMap { path, lines in
            lines.enumerated().flatMap { number, line in Self.commandLines(in: line).map { (place: "\(path):\(number + 1)", words: $0) } }
        }
        #expect(lines.count > 200)
        for (place, words) in lines {
            do {
                _ = try Rockpool.parseAsRoot(words)
            } catch {
                let message = Rockpool.message(for: error)
                // Help and versions that a line asks for are no mistakes, and a page may name a command without its arguments.
                guard Rockpool.exitCode(for: error) != .success, !message.hasPrefix("Missing "), !message.hasPrefix("give ") else {
                    continue
                }
                Issue.record("\(place): rockpool \(words.joined(separator: " ")): \(message)")
            }
        }
    }

    /// The arguments of each `rockpool` that a line of a page calls: in a block of commands, or between backquotes. Lines with parts left out
    /// are sketches, no commands.
    private static func commandLines(in line: String) -> [[String]] {
        let candidates: [Substring]
        if line.hasPrefix("    ") || line.hasPrefix("rockpool ") || line.hasPrefix("sudo rockpool ") {
            candidates = [line.drop { $0 == " " }]
        } else {
            candidates = line.split(separator: "`", omittingEmptySubsequences: false).enumerated().filter { $0.offset % 2 == 1 }.map(
                \.element)
        }
        return candidates.compactMap { text in
            var words = words(of: text)
            if words.first == "sudo" { words.removeFirst() }
            guard words.first == "rockpool", words.count > 1, !text.contains("…"), !text.contains("["), !text.contains("<") else {
                return nil
            }
            // What the program prints is no command.
            guard words[1] != "ready", words[1].first?.isNumber == false else { return nil }
            let values = ["URL": "http://api.example.com/", "MODE": "auto", "SHELL": "bash"]
            return words.dropFirst().map { values[$0] ?? $0 }
        }
    }

    /// The words of the first command of a line, as a shell takes them: quotes are removed, a pipe, a list or a comment ends it.
    private static func words(of line: some StringProtocol) -> [String] {
        var words: [String] = [], word: String?, quote: Character?
        loop: for character in line {
            switch character {
            case quote: quote = nil
            case _ where quote != nil: word = (word ?? "") + String(character)
            case "'", "\"":
                quote = character
                word = word ?? ""
            case " ":
                if let done = word { words.append(done) }
                word = nil
            case "|", ";", "&", ">", ")", "\\": break loop
            case "#" where word == nil: break loop
            default: word = (word ?? "") + String(character)
            }
        }
        if let word { words.append(word) }
        return words
    }
}
