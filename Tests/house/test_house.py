"""Tests of the measurements: `python3 -m unittest discover -s Tests/house`."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True

import allowances
from bytesizes import byte_sizes
from circles import circles
from declarations import declarations
from lexer import load
from plurals import plurals
from project import Project, Result, Table

# Removed at the end of the run.
ROOM = tempfile.TemporaryDirectory(prefix="house-")

SAMPLE = r"""
// It says nothing.
package struct Shelf: Sendable {
    let a: Int, text = "func no() { // not a comment \(make("}")) {"
    var computed: Int { 1 }
    var observed = 1 { didSet { work() } }
    static let shared = Shelf()
    init(_ a: Int) { self.a = a }
    func put(_ book: Book, _ at: (Int, to: Int), in room: Room = { _ in .first }(), @Escaping by: Hand) async throws -> [Int: Int] {
        func local(_ x: Int) {}
        return #"\("not code"#
    }
    static func + (a: Shelf, b: Shelf) -> Shelf { a }
}
protocol Reader { func read(_ from: Shelf); var isOpen: Bool { get } }
extension Shelf.Board { enum Kind { case thin } }
"""


def project(files: dict[str, str]) -> Project:
    """A project of `files`, by path."""
    root = Path(tempfile.mkdtemp(dir=ROOM.name))
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return Project(root)


class HouseTests(unittest.TestCase):
    def test_counts_are_no_sizes(self) -> None:
        lines = [
            "let keyCount = 4096, tickCount: Int64 = 1 << 41",
            "let keys = table(count: 8192, byteCount: 4096)",
            "let limit = 65_536, other = 16 << 20",
            "if text.utf8.count > 2 * 1024 {}",
            "let step: Int64 = .kib(64), day = 86_400_000",
        ]
        found = byte_sizes(project({"Sources/Library/Sizes.swift": "\n".join(lines)}))
        self.assertEqual(found.excesses, {"Library: bare": 2, "Library: 1 << n": 1, "Library: n * 1024": 1})

    def test_plurals_are_made_in_one_place(self) -> None:
        lines = [
            r'print("\(count) writes, \(a.b(c)) queued operations")',
            r'print("\(count.counted("write")), \(Self.limit) operations at most, 1 of \(count) conflicts, \(name) writes it")',
            r'print("\(count) \(count == 1 ? "entry" : "entries")")',
        ]
        found = plurals(project({"Sources/Library/Words.swift": "\n".join(lines)}))
        self.assertEqual([failure.split(": ")[0] for failure in found.failures], [f"Sources/Library/Words.swift:{n}" for n in (1, 3)])

    def test_declarations_are_found_and_literals_are_not_code(self) -> None:
        sample = project({"Sources/Library/Shelf.swift": SAMPLE})
        [file] = load(sample.root, sample.root / "Sources")
        found = declarations(file)
        self.assertEqual([type_.name for type_ in found.types], ["Shelf", "Reader", "Shelf.Board", "Shelf.Board.Kind"])
        self.assertEqual(
            [(function.owner, function.name, function.lines) for function in found.functions],
            [
                ("Shelf", "init", 1),
                ("Shelf", "put", 4),
                ("Shelf", "local", 1),
                ("Shelf", "+", 1),
                ("Reader", "read", 0),
            ],
        )

    def test_a_circle_needs_both_directions(self) -> None:
        files = {"Sources/L/A/One.swift": "struct One { let two: Two }", "Sources/L/B/Two.swift": "struct Two {}"}
        self.assertEqual(circles(project(files)).excesses, {})
        files["Sources/L/B/Two.swift"] = "struct Two { func one(_ text: String) -> One? { nil } }"
        self.assertEqual(circles(project(files)).excesses, {"L: A and B": 1})

    def test_an_allowance_only_goes_down(self) -> None:
        result = Result("", Table([""]), {"new": 3, "risen": 5, "fallen": 1})
        verdict = allowances.judge("check", result, {"risen": 4, "fallen": 2, "gone": 9})
        self.assertEqual((len(verdict.failures), len(verdict.lowerable)), (2, 2))
        self.assertEqual(allowances.lowered(result, {"risen": 4, "fallen": 2, "gone": 9}), {"risen": 4, "fallen": 1})


if __name__ == "__main__":
    unittest.main()
