"""Tests of the ledger: `python3 -m unittest discover -s Tests/evidence`."""

import os
import subprocess
import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

sys.dont_write_bytecode = True

import corpora
import table
from ledger import KEPT, Entry, Ledger, Outcome, joined, least_known, record
from sources import Code, Repository, code_lines, imported, named_folders
from targets import Target, every

ROOT = Path(__file__).resolve().parents[2]
# Removed at the end of the run.
ROOM = tempfile.TemporaryDirectory(prefix="evidence-")
SMALL = Target(name="small", what="runs", goal=100, command="run --seed {first} --runs {count}", done=r"(\d+) runs", spends=True)


def outcome(runs=10, seeds=(1, 10), findings=(), seconds=5.0, commit="aaaa"):
    return Outcome(commit, "2026-12-01", "run", runs, seconds, seeds, list(findings))


def repository(files):
    """A repository with one commit of `files`, by path."""
    root = Path(tempfile.mkdtemp(dir=ROOM.name))
    subprocess.run(["git", "init", "-q", root], check=True)
    commit(root, files)
    return Repository(root)


def commit(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    git = ["git", "-C", root, "-c", "user.name=t", "-c", "user.email=t@localhost"]
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "files"], check=True)


class LedgerTests(unittest.TestCase):
    def test_ranges_that_touch_are_one(self):
        self.assertEqual(joined([(11, 20), (1, 10), (40, 40), (15, 22)]), [[1, 22], [40, 40]])

    def test_runs_of_the_same_code_add_up(self):
        ledger = Ledger()
        ledger.add("a", "one", outcome())
        ledger.add("a", "one", outcome(30, (11, 40), commit="bbbb"))
        entry = ledger.entry("a", "one")
        self.assertEqual((entry.runs, entry.times, entry.longest, entry.seeds, entry.commit), (40, 2, 30, [[1, 40]], "bbbb"))

    def test_a_changed_code_starts_anew_with_new_seeds(self):
        ledger = Ledger()
        ledger.add("a", "one", outcome(findings=["lost"]))
        self.assertEqual((ledger.runs("a", "two"), ledger.next_seed("a")), (0, 11))
        ledger.add("a", "two", outcome(5, (11, 15)))
        self.assertEqual((ledger.runs("a", "two"), ledger.entry("a", "two").findings), (5, []))
        self.assertEqual((ledger.earlier("a", "two").runs, ledger.earlier("a", "two").findings), (10, ["lost"]))
        self.assertEqual((ledger.runs("a", "one"), ledger.next_seed("b")), (10, 1))

    def test_few_states_of_the_code_are_kept_and_the_present_one_always(self):
        ledger = Ledger()
        for number in range(6):
            ledger.add("a", str(number), outcome(1, (number + 1, number + 1)))
        self.assertEqual([entry.code for entry in ledger.entries], ["3", "4", "5"])
        # Back to an older state, as after a revert.
        ledger.add("a", "3", outcome(1, (7, 7)))
        self.assertEqual((len(ledger.entries), ledger.runs("a", "3"), ledger.next_seed("a")), (KEPT, 2, 8))

    def test_the_fewest_runs_against_the_goal_come_first(self):
        large, late = replace(SMALL, name="large", goal=1000), replace(SMALL, name="late")
        targets, codes, ledger = [large, SMALL, late], {"large": "x", "small": "x", "late": "x"}, Ledger()
        self.assertEqual(least_known(targets, ledger, codes).name, "large")
        ledger.add("large", "x", outcome(50))
        self.assertEqual(least_known(targets, ledger, codes).name, "small")
        ledger.add("small", "x", outcome(4))
        ledger.add("late", "x", outcome(30))
        self.assertEqual(least_known(targets, ledger, codes).name, "small")
        ledger.add("small", "x", outcome(4))
        self.assertEqual(least_known(targets, ledger, codes).name, "large")
        self.assertEqual(least_known(targets, ledger, codes | {"late": "changed"}).name, "late")
        self.assertIsNone(least_known(targets, ledger, {}))

    def test_the_file_takes_what_another_process_has_added(self):
        path = Path(ROOM.name, "ledger.json")
        record(path, "a", "one", outcome())
        record(path, "b", "one", outcome(3, None, ["a line"]))
        ledger = record(path, "a", "one", outcome(2, (11, 12)))
        self.assertEqual([(entry.target, entry.runs) for entry in ledger.entries], [("a", 12), ("b", 3)])
        self.assertEqual(Ledger.read(path).entry("b", "one").findings, ["a line"])
        self.assertEqual(len(path.read_text().splitlines()), 4)

    def test_the_measured_rate_takes_the_place_of_the_guess(self):
        ledger = Ledger([Entry("a", "one", runs=50, seconds=10), Entry("a", "two", seconds=3)])
        self.assertEqual((ledger.rate("a", 1), ledger.rate("b", 7)), (5, 7))


class RequestTests(unittest.TestCase):
    def test_the_output_says_how_many_runs_there_were(self):
        request = SMALL.request("", 11, 10, 2)
        self.assertEqual(str(request), "run --seed 11 --runs 20")
        self.assertEqual(request.judged(0, "all good: 20 runs"), (20, (11, 30), []))
        runs, seeds, findings = request.judged(1, "not met: 8 runs, one lost\nbye")
        self.assertEqual((runs, seeds), (8, (11, 18)))
        self.assertIn("run --seed 11 --runs 20: not met: 8 runs, one lost", findings[0])

    def test_without_a_count_nothing_is_counted_even_if_it_ends_well(self):
        runs, seeds, findings = SMALL.request("", 1, 10, 2).judged(0, "no test matches")
        self.assertEqual((runs, seeds, len(findings)), (0, None, 1))

    def test_a_skipped_run_is_nothing(self):
        self.assertIsNone(SMALL.request("", 1, 10, 2).judged(0, "held         skipped: a goal (): needs h2load"))

    def test_one_unit_can_make_several_runs_or_half_a_run(self):
        many = replace(SMALL, each=85, spends=False).request("", 4, 170, 1)
        self.assertEqual((many.count, many.judged(0, "166 runs")[1]), (2, (4, 4)))
        half = replace(SMALL, each=0.5).request("", 1, 10, 1)
        self.assertEqual((half.count, half.judged(0, "10 runs")[1]), (20, (1, 20)))

    def test_each_command_says_its_count_in_what_the_runs_print(self):
        samples = {
            "flips": "flips        **met**: R4: 50,048 mutated requests of 153 samples (FLIPS) (lives)",
            "kills": "restart      met: C3, D1: 100 SIGKILLs and 100 SIGSEGVs under a supervisor",
            "power": "power        met: D3: 17 scenes (no): 680 power cuts (8 of each mode)",
            "chaos": "soak         met: L2: 3600 s, 407,840 requests",
            "held": "held         met: L1: 60 s at 70 % of the peak",
            "histories": "histories    met: R5: 100,000 random requests of two tokens",
            "compound": "compound     met: D4: pairs of faults (as D2): 136 pairs, both met in 98",
            "sessions": "sessions: 1 client(s), 12 sequences of 25 steps from seed 1: 0 broken, 3.0 s",
            "rivals": "sessions: 2 client(s), 12 sequences of 25 steps from seed 1: 0 broken, 3.0 s",
            "histories-simulated": "simulation, shard 1: 9 operations, 9 requests arrived, 0 failing seeds",
            "sessions-simulated": "sessions, shard 1: 9 reads and 9 lists compared, 0 failing seeds",
            "fleet": "S14 random faults\n    holds: seed 1, 2 min: 3 cut; 9 acknowledged",
            "fuzz json": "json                 100 runs,      50 a second,     3 inputs that reached something new",
        }
        for target in every(ROOT):
            sample = samples.get(target.name, samples["fuzz json"])
            runs, _, findings = target.request("b", 1, 1, 1).judged(0, sample)
            self.assertEqual((runs > 0, findings), (True, []), target.name)


class SourcesTests(unittest.TestCase):
    files = {
        "Sources/RockpoolCore/Range/Range.swift": "package struct ByteRange {}",
        "Sources/RockpoolCore/Other/Other.swift": "package enum Other {}",
        "Tests/Fuzz/Targets/FuzzTarget+Range.swift": "// Not of Other.\nlet one = ByteRange()",
        "Tests/faults/flips.py": "from server import Server\nimport os",
        "Tests/faults/server.py": "import json",
        "Tests/faults/bombs.py": "import server",
        "Tests/sessions/one.py": "import server\nimport two",
    }
    target = replace(SMALL, naming=("Tests/Fuzz/Targets/FuzzTarget+Range.swift",), harness=("Tests/faults/flips.py",))

    def test_the_folders_are_those_of_the_named_types(self):
        found = named_folders(repository(self.files), "HEAD", self.target.naming)
        self.assertEqual(found, {"Sources/RockpoolCore/Range"})

    def test_imports_are_followed_into_the_own_folder_and_that_of_the_faults(self):
        project = repository(self.files)
        self.assertEqual(imported(project, "HEAD", ["Tests/faults/flips.py"]), {"Tests/faults/flips.py", "Tests/faults/server.py"})
        self.assertEqual(imported(project, "HEAD", ["Tests/sessions/one.py"]), {"Tests/sessions/one.py", "Tests/faults/server.py"})

    def test_only_what_the_target_depends_on_changes_its_hash(self):
        project = repository(self.files)

        def after(path, text):
            commit(project.root, {path: text})
            return Code(Repository(project.root), self.target, "HEAD", "HEAD").hash

        first = Code(project, self.target, "HEAD", "HEAD").hash
        self.assertEqual(after("Sources/RockpoolCore/Other/Other.swift", "package enum Other { case one }"), first)
        self.assertEqual(after("Tests/faults/bombs.py", "import os"), first)
        self.assertEqual(after("Sources/RockpoolCore/Range/Range.swift", "/// A range.\n\npackage struct ByteRange {}\n"), first)
        second = after("Sources/RockpoolCore/Range/New.swift", "struct New {}")
        third = after("Tests/faults/server.py", "import re")
        self.assertEqual(len({first, second, third}), 3)

    def test_a_change_in_no_commit_and_a_newer_source_are_told(self):
        project = repository(self.files)
        code = Code(project, self.target, "HEAD", "HEAD")
        build = Path(ROOM.name, "build")
        build.write_text("")
        self.assertEqual((code.changed(), code.newer_than(build)), (None, None))
        path = project.root / "Sources/RockpoolCore/Range/Range.swift"
        path.write_text("struct ByteRange { let one = 1 }")
        self.assertEqual(code.changed(), "Sources/RockpoolCore/Range/Range.swift")
        self.assertIsNone(code.changed(of_build=False))
        later = build.stat().st_mtime + 5
        os.utime(path, (later, later))
        self.assertEqual(str(code.newer_than(build)), "Sources/RockpoolCore/Range/Range.swift")

    def test_comments_and_blank_lines_do_not_count(self):
        self.assertEqual(code_lines("a.swift", "// a\n\nlet a = 1 // one  \n    /// b\n"), "let a = 1 // one")
        self.assertEqual(code_lines("a.py", "# a\na = 1\n"), "a = 1")
        self.assertEqual(code_lines("a.txt", "# a\n// b\n"), "# a\n// b")

    def test_every_target_names_sources_that_exist(self):
        here = Repository(ROOT)
        targets = every(ROOT)
        self.assertEqual(len({target.name for target in targets}), len(targets))
        for target in targets:
            for place in (*target.sources, *target.naming, *target.harness):
                self.assertTrue((ROOT / place).exists(), f"{target.name}: {place}")
            if target.naming:
                self.assertTrue(named_folders(here, "HEAD", target.naming), target.name)


class PageTests(unittest.TestCase):
    def test_the_table_says_what_is_reached_and_what_was_before(self):
        ledger = Ledger()
        ledger.add("small", "one", outcome(120, (1, 120), ["lost | doubled"]))
        ledger.add("small", "two", outcome(25, (121, 145)))
        text = table.page([SMALL], ledger, {"small": "two"})
        self.assertIn("0 of 1 goals are reached.", text)
        self.assertIn("| small | 100 runs | 25 (25 %) in 1, the longest 25 | nothing | 121–145 | 2026-12-01, aaaa | `run` |", text)
        self.assertIn("| 120, 1: lost \\| doubled (2026-12-01, aaaa) |", text)

    def test_the_page_replaces_what_stands_between_its_marks(self):
        path = Path(ROOM.name, "page.md")
        path.write_text("# Title\n")
        for text in ("one", "two"):
            table.publish(path, text)
        self.assertEqual(path.read_text(), f"# Title\n\n{table.BEGIN}\ntwo\n{table.END}\n")


class CorporaTests(unittest.TestCase):
    def test_the_smallest_inputs_are_kept_and_come_back(self):
        room = Path(tempfile.mkdtemp(dir=ROOM.name))
        found, kept, again = room / "found", room / "kept/json.txt", room / "again"
        found.mkdir()
        for size in (2, 3, 9_000, 9_001, 0):
            (found / str(size)).write_bytes(b"x" * size)
        corpora.pack(kept, found)
        corpora.unpack(kept, again)
        self.assertEqual(sorted(path.stat().st_size for path in again.iterdir()), [2, 3, 9_000])
        corpora.unpack(room / "none", room / "empty")
        self.assertEqual(list((room / "empty").iterdir()), [])


if __name__ == "__main__":
    unittest.main()
