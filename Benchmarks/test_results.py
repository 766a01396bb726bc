"""Tests of what programs write into RESULTS.md: `python3 -m unittest discover -s Benchmarks`."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE / "peers"))

import report
import sections
from results import Results, Sample

FACTS = [("date", "2030-01-02 03:04 UTC"), ("Rockpool", "commit abc, Swift version 6")]


class ResultsTests(unittest.TestCase):
    def setUp(self) -> None:
        room = tempfile.TemporaryDirectory()
        self.addCleanup(room.cleanup)
        self.path = Path(room.name) / "RESULTS.md"

    def test_a_section_ends_at_the_next_heading_or_marker(self) -> None:
        for behind in ("## Next\n\nstays\n", "<!-- next: begin -->\nstays\n"):
            self.path.write_text(f"# Title\n\n## Mine\n\nold\n\n### Below\n\nold\n\n{behind}")
            sections.publish(self.path, "## Mine\n", "## Mine\n\nnew\n")
            self.assertEqual(self.path.read_text(), f"# Title\n\n## Mine\n\nnew\n\n{behind}")

    def test_a_section_that_is_missing_is_added(self) -> None:
        self.path.write_text("# Title\n")
        sections.publish(self.path, "## Mine", "## Mine\n\nnew\n")
        self.assertEqual(self.path.read_text(), "# Title\n\n## Mine\n\nnew\n")

    def test_a_run_replaces_the_rows_of_its_workloads(self) -> None:
        for name, cpu in (("pass-1k", 8), ("hit-1k", 6), ("hit-1k", 4)):
            results = Results()
            for proxy, value in (("rockpool", cpu), ("nginx", 8)):
                results.add(name, proxy, Sample(value, 100, 1, 0.1, 0.2, 0, 1, 0))
            self.path.write_text(report.document(results, FACTS, "command", "chart.svg", self.path) + "\n## Behind\n")
        rows = list(report.kept_rows(self.path).values())
        self.assertEqual([(row[0], row[5]) for row in rows if row[1] == "CPU per request"], [(rows[0][0], "0.50"), (rows[-1][0], "1.00")])
        self.assertIn("`hit-1k`", rows[0][0])
        self.assertEqual(self.path.read_text().count("## Behind"), 3)

    def test_the_page_has_rows(self) -> None:
        self.assertGreater(len(report.kept_rows(HERE / "RESULTS.md")), 20)


if __name__ == "__main__":
    unittest.main()
