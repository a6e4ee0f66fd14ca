#!/usr/bin/env python3
"""Tests of the arithmetic of --against, and of parts that fail. Needs nothing but Python."""

import contextlib
import io
import math
import unittest

import against
import measured
import report
import run


def comparison(old, new):
    return against.Comparison("row", "ns", old, new)


def quiet(function, *words, **options):
    with contextlib.redirect_stderr(io.StringIO()):
        return function(*words, **options)


class Options(unittest.TestCase):
    def test_folders_are_found_from_every_folder(self):
        options = run.parse_options(["service", "--against", "old/release", "--build", "new"])
        self.assertTrue(options.against.is_absolute())
        self.assertTrue(options.build.is_absolute())


class Verdict(unittest.TestCase):
    def test_compares_the_two_runs_of_a_round(self):
        # The machine was slower in the second round, for both.
        row = comparison([100, 200, 100], [110, 220, 110])
        self.assertAlmostEqual(row.ratio, 1.1)
        self.assertAlmostEqual(row.spread, 0)
        self.assertEqual(row.verdict, "SLOWER")

    def test_spread_is_the_interquartile_range_of_the_ratios(self):
        row = comparison([100] * 7, [97, 98, 99, 100, 101, 102, 103])
        self.assertAlmostEqual(row.ratio, 1)
        self.assertAlmostEqual(row.spread, 0.04)

    def test_difference_within_the_spread_is_none(self):
        self.assertEqual(comparison([100] * 5, [95, 100, 104, 108, 112]).verdict, "same")

    def test_lower_values_are_faster(self):
        self.assertEqual(comparison([100] * 5, [80, 81, 80, 79, 80]).verdict, "faster")

    def test_difference_below_a_percent_is_none(self):
        self.assertEqual(comparison([1000] * 3, [1009] * 3).verdict, "same")
        self.assertEqual(comparison([1000] * 3, [1011] * 3).verdict, "SLOWER")

    def test_two_rounds_are_not_judged(self):
        self.assertEqual(comparison([1, 1], [2, 2]).verdict, "too few rounds")
        self.assertTrue(math.isnan(comparison([1], [2]).spread))

    def test_rows_of_one_build_only_are_named(self):
        self.assertEqual(comparison([math.nan], [1]).verdict, "only in NEW")
        self.assertEqual(comparison([1], [math.nan]).verdict, "only in OLD")
        self.assertEqual(comparison([math.nan], [math.nan]).verdict, "not measured")

    def test_zero_of_the_old_build_gives_no_ratio(self):
        self.assertEqual(comparison([0, 0, 0], [1, 1, 1]).ratios, [])

    def test_json_leaves_out_what_was_not_measured(self):
        self.assertEqual(comparison([math.nan], [1]).entry(),
                         {"name": "row", "unit": "ns", "new": 1, "rounds": 0,
                          "verdict": "only in NEW"})


class Rounds(unittest.TestCase):
    """`old` and `new` stand for the builds."""

    def setUp(self):
        self.asked = []

    def part(self, name="part", rows=("a",), broken=()):
        def measure(setup, wanted):
            self.asked.append(setup)
            if setup in broken:
                raise RuntimeError("it broke")
            return {row: 1.0 for row in rows if wanted is None or row in wanted}

        return against.WeirPart(name, dict.fromkeys(rows, "ns"), measure)

    def compare(self, *parts, pattern=None, **options):
        return quiet(against.compare, against.select(parts, pattern), "old", "new", **options)

    def test_builds_take_turns_in_being_first(self):
        self.compare(self.part(), rounds=3)
        self.assertEqual(self.asked, ["old", "new", "new", "old", "old", "new"])

    def test_number_of_rounds_follows_the_time(self):
        rows, _ = self.compare(self.part(), budget=1000)
        self.assertEqual(len(rows[0].ratios), against.MOST_ROUNDS)
        rows, _ = self.compare(self.part(), budget=0)
        self.assertEqual(len(rows[0].ratios), 5)

    def test_part_that_fails_does_not_end_the_others(self):
        rows, failures = self.compare(self.part("bad", ("a",), broken=("new",)),
                                      self.part("good", ("b",)), rounds=3)
        self.assertEqual([row.name for row in rows], ["b"])
        self.assertEqual(list(map(str, failures)), ["FAILED: bad (NEW): it broke"])

    def test_parts_without_a_wanted_row_are_not_measured(self):
        rows, _ = self.compare(self.part("one", ("x/1", "x/2")), self.part("two", ("y/1",)),
                               pattern="^x/2$", rounds=1)
        self.assertEqual([row.name for row in rows], ["x/2"])
        self.assertEqual(len(self.asked), 2)

    def test_rows_that_only_the_old_build_has_are_reported(self):
        def measure(setup, _):
            return {"a": 1.0, "gone": 1.0} if setup == "old" else {"a": 1.0}

        rows, _ = self.compare(against.WeirPart("part", {"a": "ns"}, measure), rounds=3)
        self.assertEqual([(row.name, row.verdict) for row in rows],
                         [("a", "same"), ("gone", "only in OLD")])

    def test_pattern_without_a_match_lists_the_rows(self):
        with self.assertRaisesRegex(against.UnknownRows, "(?s)no row matches.*x/1"):
            against.select([self.part("one", ("x/1",))], "nothing")
        with self.assertRaisesRegex(against.UnknownRows, "no regular expression"):
            against.select([self.part()], "(")

    def test_rows_of_every_suite_have_names_of_their_own(self):
        for name, suite in run.SUITES.items():
            with self.subTest(name):
                rows = [row for part in suite.weir_parts() for row in part.rows]
                self.assertEqual(len(rows), len(set(rows)))
                self.assertTrue(all(row.startswith(f"{name}/") for row in rows))


class FailedParts(unittest.TestCase):
    def setUp(self):
        self.setup_of_suite = measured.Setup("build", "rust")

    def test_other_parts_are_still_measured(self):
        def parts():
            yield measured.Part("first", lambda: {"first": 1})
            yield measured.Part("slow", lambda: measured.run_program(
                ["sh", "-c", "echo it does not keep up >&2; exit 3"]))
            yield measured.Part("after", lambda: {"after": self.setup_of_suite.answer("slow")})
            yield measured.Part("last", lambda: {"last": 2})

        failures = quiet(measured.run_parts, self.setup_of_suite, parts())
        self.assertEqual(self.setup_of_suite.answers, {"first": 1, "last": 2})
        self.assertEqual([failure.part for failure in failures], ["slow", "after"])
        self.assertIn("it does not keep up", failures[0].reason)
        self.assertIn("status 3", failures[0].reason)
        self.assertIn("needs the result of 'slow'", failures[1].reason)

    def test_server_that_all_parts_need_is_a_failure_too(self):
        def parts():
            yield measured.Part("first", lambda: {"first": 1})
            raise RuntimeError("redis does not listen")

        failures = quiet(measured.run_parts, self.setup_of_suite, parts())
        self.assertEqual(self.setup_of_suite.answers, {"first": 1})
        self.assertEqual(len(failures), 1)

    def test_program_that_is_missing_is_named(self):
        with self.assertRaisesRegex(RuntimeError, "no-such-program is missing"):
            measured.run_program(["no-such-program"])

    def test_interruption_ends_the_suite(self):
        ended = []

        def interrupted():
            raise KeyboardInterrupt

        def parts():
            try:
                yield measured.Part("first", interrupted)
            finally:
                ended.append("servers")

        with self.assertRaises(KeyboardInterrupt):
            quiet(measured.run_parts, self.setup_of_suite, parts())
        self.assertEqual(ended, ["servers"])

    def test_every_suite_reports_although_all_its_parts_failed(self):
        for name, suite in run.SUITES.items():
            with self.subTest(name):
                results = suite.Results({})
                for figure in suite.figures(results):
                    self.assertTrue(math.isnan(figure.value), figure.name)
                for table in suite.tables(results):
                    self.assertNotRegex(table.text(), r"\bnan|MISSED|\bmet\b")

    def test_value_that_was_not_measured_is_a_failure_of_its_own(self):
        figures = [report.Figure("gone", math.nan, "ns"), report.Figure("there", 1, "ns")]
        self.assertEqual(len(run.unmeasured(figures, [])), 1)
        self.assertEqual(run.unmeasured(figures, [measured.Failure("part", "why")]), [])

    def test_table_shows_a_dash_and_does_not_judge(self):
        table = report.Table("title", ["what", "ns", "ratio", "target"],
                             [["tenant nan", "nan", "nanx", "at most 2x: MISSED"],
                              ["other", "1", "1.00x", "at most 2x: met"]])
        self.assertEqual(table.rows, [["tenant nan", "-", "-", ""],
                                      ["other", "1", "1.00x", "at most 2x: met"]])


if __name__ == "__main__":
    unittest.main()
