# SPDX-License-Identifier: MIT
"""The page of `laconic report` in a browser: no error, no request, light and
dark, narrow and wide, with its script and without. Without Chromium the test is
skipped.

usage: test_report_browser.py LACONIC
"""
import json
import os
import re
import sys
import unittest

sys.dont_write_bytecode = True
from browser import Browser, CHROMIUM
from runs import HOSTILE, Runs, TRACE, epoch

SKIPPED = 77  # CTest shows the test as such


class InBrowser(Runs):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def show(self, *paths, **more):
        self.succeeds("report", *paths, "--out", "r.html")
        self.browser.open(os.path.join(self.folder, "r.html"), **more)
        return self.browser

    def everything(self):
        """Runs, seeds, a trace and plans."""
        self.two_runs()
        for seed in "1", "2":
            self.run_of("all/seed-" + seed, [epoch(1), epoch(2)], lr="0.3",
                        seed=seed)
        self.write("t.csv", (TRACE + "".join(
            "%d,%g,%g,%d\n" % (i, 2.0 ** -i, i, 9 * i)
            for i in range(100))).encode())
        self.write("p.json", json.dumps({"candidates": [
            {"algorithm": "choco", "compressor": "sign",
             "step_seconds": 1}]}).encode())
        return "sum", "few", "all", "t.csv", "p.json"

    def displayed(self, selector):
        return self.browser.value(
            "Array.from(document.querySelectorAll(%s)).map("
            "e => getComputedStyle(e).display !== 'none')"
            % json.dumps(selector))

    def test_no_error_and_no_request(self):
        paths = self.everything()
        for width in 360, 1400:
            for dark in False, True:
                page = self.show(*paths, width=width, dark=dark)
                self.assertEqual(page.errors, [])
                self.assertEqual(len(page.requests), 1)
                self.assertTrue(page.requests[0].startswith("file://"))
                # Wide tables scroll by themselves.
                self.assertLessEqual(page.value(
                    "document.documentElement.scrollWidth"), width)

    def test_colours_follow_the_theme(self):
        paths = self.everything()

        def brightness(**more):
            self.show(*paths, **more)
            return [sum(map(int, re.findall(r"\d+", self.browser.value(
                "getComputedStyle(document.body).%s" % name))[:3]))
                for name in ("backgroundColor", "color")]
        paper, ink = brightness(dark=False)
        self.assertGreater(paper, ink + 300)
        paper, ink = brightness(dark=True)
        self.assertGreater(ink, paper + 300)

    def switch(self, script):
        page = self.show(*self.everything(), script=script)
        self.assertEqual(set(self.displayed(".curve")), {True})
        page.click("#s1")
        self.assertEqual(set(self.displayed(".curve.r1")), {False})
        self.assertEqual(set(self.displayed(".curve:not(.r1)")), {True})
        self.assertEqual(set(self.displayed("tr.r1")), {True})
        page.click("#s1")
        self.assertEqual(set(self.displayed(".curve")), {True})

    def test_curves_can_be_switched_off_and_on(self):
        self.switch(script=True)

    def test_switches_need_no_script(self):
        self.switch(script=False)

    def test_all_switches_at_once_and_only_one(self):
        page = self.show(*self.everything())
        page.click("nav .all button:nth-child(2)")
        self.assertEqual(set(self.displayed(".curve")), {False})
        page.click("nav .all button:nth-child(1)")
        self.assertEqual(set(self.displayed(".curve")), {True})
        page.value("document.querySelector('.l2 label').dispatchEvent("
                   "new MouseEvent('dblclick', {bubbles: true}))")
        self.assertEqual(set(self.displayed(".curve.r2")), {True})
        self.assertEqual(set(self.displayed(".curve:not(.r2)")), {False})

    def test_values_are_shown_under_the_pointer(self):
        page = self.show(*self.everything())
        self.assertFalse(self.displayed(".tip")[0])
        page.point("#accuracy + .charts .r1 circle:last-of-type")
        self.assertTrue(self.displayed(".tip")[0])
        lines = page.value("Array.from(document.querySelectorAll('.tip > *'))"
                           ".map(e => Array.from(e.childNodes, n => "
                           "n.textContent).join(' '))")
        self.assertEqual(lines[0], "epoch 2")
        self.assertEqual(lines[1:], ["sum 80.00 %", "few 79.00 %",
                                     "all/seed-* (2) 50.00 % \u00b1 0.00 %"])
        page.point("h1")
        self.assertFalse(self.displayed(".tip")[0])
        self.assertEqual(page.errors, [])

    def test_values_do_not_cover_their_point(self):
        paths = self.everything()
        for width in 400, 1400:
            page = self.show(*paths, width=width)
            for chart in range(3):
                for end in "first", "last":
                    selector = ("#accuracy + .charts figure:nth-child(%d) .r1 "
                                "circle:%s-of-type" % (chart + 1, end))
                    page.point(selector)
                    self.assertFalse(page.value(
                        "(() => { const [a, b] = ['.tip', %s].map(s => document"
                        ".querySelector(s).getBoundingClientRect());"
                        "return a.left < b.right && b.left < a.right"
                        " && a.top < b.bottom && b.top < a.bottom; })()"
                        % json.dumps(selector)), (width, chart, end))
                    self.assertTrue(self.displayed(".tip")[0])

    def test_points_beside_the_pointer_are_not_shown(self):
        page = self.show(*self.everything())
        page.point("#averaging + p + .charts circle:nth-of-type(50)")
        self.assertEqual(page.value(
            "document.querySelectorAll('.tip div').length"), 1)

    def test_curves_that_are_off_have_no_values(self):
        page = self.show(*self.everything())
        page.click("#s0")
        page.point("#accuracy + .charts .r1 circle:last-of-type")
        self.assertEqual(page.value(
            "document.querySelectorAll('.tip div').length"), 2)

    def test_points_can_be_read_with_the_keyboard(self):
        page = self.show(*self.everything())
        page.value("document.querySelector('.chart').focus()")
        for _ in range(2):
            page.ask("Input.dispatchKeyEvent", type="keyDown",
                     key="ArrowRight", code="ArrowRight")
        self.assertEqual(page.value(
            "document.querySelector('.tip b').textContent"), "epoch 2")

    def test_tables_are_copied(self):
        page = self.show(*self.everything())
        page.value("navigator.clipboard.writeText = "
                   "async text => { window.copied = text; }")
        page.click(".copy button")
        rows = [line.split("\t") for line in page.value("copied").split("\n")]
        self.assertEqual(rows[0][:3], ["run", "epoch", "accuracy"])
        self.assertEqual([row[0] for row in rows[1:]],
                         ["sum", "few", "all/seed-* (2)"])
        self.assertEqual(rows[2][2], "79.00 %")
        self.assertEqual(len(set(map(len, rows))), 1)
        self.assertEqual(page.errors, [])

    def test_values_in_tables_are_in_one_line(self):
        for i in range(3):
            self.run_of("run-%d" % i, [epoch(1)], algorithm="error-feedback",
                        compressor="top-k:0.0%d" % i, lr="0.00%d" % i,
                        data="fashion-mnist-%d" % i, model="lenet-%d" % i)
        page = self.show("run-0", "run-1", "run-2", width=400)
        self.assertEqual(page.value(
            "Array.from(document.querySelectorAll('td:not(:first-child)'))"
            ".filter(cell => { const text = document.createRange();"
            "text.selectNodeContents(cell);"
            "return text.getClientRects().length > 1; })"
            ".map(cell => cell.textContent)"), [])

    def many_runs(self):
        """Eleven rows of seeds with long names and many settings. One
        diverged."""
        for i in range(11):
            for seed in "1", "2":
                loss = 1.2345e7 if i == 10 else 0.3 + i / 500
                accuracy = 0.1 if i == 10 else 0.9 - i / 500
                wobble = 0 if seed == "1" else 0.00234
                self.run_of(
                    "error-feedback--top-k-%d/seed-%s" % (i, seed),
                    [epoch(n, accuracy - 0.1 / n + wobble,
                           (loss + wobble) * 2 / n, payload=123456789 // (1 + i))
                     for n in (1, 2)], epochs="2", seed=seed,
                    algorithm="error-feedback:decay=0.9%d" % i,
                    compressor="top-k:0.0%d" % i, lr="0.012345%d" % i,
                    **{"a-long-name-of-a-setting-%d" % k: "value-%d" % i
                       for k in range(8)})
        return ["error-feedback--top-k-%d" % i for i in range(11)]

    def test_tables_fit_a_window_of_1200_pixels(self):
        paths = self.many_runs() + list(self.everything())
        for width in 1200, 1400:
            page = self.show(*paths, width=width)
            self.assertLessEqual(page.value(
                "document.documentElement.scrollWidth"), width)
            self.assertEqual(page.value(
                "Array.from(document.querySelectorAll('details'))"
                ".forEach(d => { d.open = true; })"), None)
            self.assertEqual(page.value(
                "Array.from(document.querySelectorAll('.scroll'))"
                ".filter(e => e.scrollWidth > e.clientWidth)"
                ".map(e => e.textContent.slice(0, 80))"), [])

    def test_texts_in_charts_do_not_overlap(self):
        paths = self.many_runs() + list(self.everything())
        for width in 400, 1200:
            page = self.show(*paths, width=width)
            self.assertEqual(page.value(
                "Array.from(document.querySelectorAll('main svg')).flatMap("
                "svg => { const texts = Array.from(svg.querySelectorAll('text'),"
                "t => [t.textContent, t.getBoundingClientRect()]);"
                "return texts.flatMap(([a, p], i) => texts.slice(i + 1)"
                ".filter(([b, q]) => p.left < q.right && q.left < p.right"
                " && p.top + 3 < q.bottom && q.top + 3 < p.bottom)"
                ".map(([b]) => a + ' / ' + b)); })"), [])

    def test_a_run_beyond_the_axis_is_marked_and_named(self):
        page = self.show(*self.many_runs())
        chart = "#accuracy + .charts figure:first-child "
        page.point(chart + ".r10 circle:last-of-type")
        self.assertEqual(page.value(
            "document.querySelector('.tip .on').lastChild.textContent"),
            "5.12 % \u00b1 0.17 %")
        self.assertEqual(self.displayed(chart + ".beyond"), [True])
        page.click("#s10")
        self.assertEqual(self.displayed(chart + ".beyond"), [False])
        self.assertEqual(page.errors, [])

    def test_a_chart_can_be_enlarged(self):
        page = self.show(*self.everything())
        width = "document.querySelector('.chart').getBoundingClientRect().width"
        before = page.value(width)
        page.click("#accuracy + .charts button")
        self.assertGreater(page.value(width), 1.5 * before)
        page.click("#accuracy + .charts button")
        self.assertEqual(page.value(width), before)
        # A chart of a narrow page is as wide as the page.
        self.show("sum", width=400)
        self.assertEqual(set(self.displayed("figcaption button")), {False})

    def test_the_page_stands_without_the_script(self):
        page = self.show(*self.everything(), script=False)
        self.assertEqual(page.value(
            "document.querySelectorAll('.curve circle title').length > 50"),
            True)
        self.assertEqual(page.value(
            "document.querySelectorAll('button').length"), 0)
        box = page.value("(() => { const b = document.querySelector("
                         "'.curve path').getBoundingClientRect();"
                         "return [b.width, b.height]; })()")
        self.assertGreater(min(box), 10)

    def test_hostile_names_do_nothing(self):
        name = HOSTILE.replace("/", "_")
        self.run_of(name, [epoch(1)], model=HOSTILE)
        page = self.show(name)
        self.assertEqual(page.errors, [])
        self.assertEqual(page.value("document.images.length"), 0)
        page.point(".curve circle")
        self.assertEqual(page.value(
            "document.querySelector('.tip span').textContent"), name)
        self.assertEqual(page.value("document.images.length"), 0)

    def test_the_policy_stops_other_scripts(self):
        self.two_runs()
        self.succeeds("report", "sum", "--out", "r.html")
        text = self.read("r.html").decode()
        self.write("r.html", text.replace(
            "</h1>", "</h1><script>window.bad = 1</script>").encode())
        self.browser.open(os.path.join(self.folder, "r.html"))
        self.assertIsNone(self.browser.value("window.bad"))
        self.assertEqual(len(self.browser.errors), 1)


if __name__ == "__main__":
    if not CHROMIUM:
        print("chromium is not installed")
        sys.exit(SKIPPED)
    unittest.main()
