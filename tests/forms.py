# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reads a form of verdicts as those do whom it is for: forms.py READERS FORM FILE.

READERS is what tools/readers prints. What was understood is printed as JSON, case by case:
its name, its result and its measurement. Whatever the reader refuses ends this with 1.
"""

import contextlib
import csv
import inspect
import json
import re
import sys
from pathlib import Path

readers, form, file = sys.argv[1:]
text = Path(file).read_text(encoding="utf-8")


def ktap():
    """The kernel's parser, tools/testing/kunit/kunit_parser.py: the cases, then their subjects."""
    sys.path.insert(0, f"{readers}/kernel/kunit")
    # Its printer keeps the standard output that it meets when it is imported.
    with contextlib.redirect_stdout(sys.stderr):
        import kunit_parser

        arguments = [text.splitlines()]
        if "printer" in inspect.signature(kunit_parser.parse_run_tests).parameters:
            arguments.append(kunit_parser.stdout)
        main = kunit_parser.parse_run_tests(*arguments)
    if main.counts.errors:
        sys.exit(f"{main.counts.errors} errors")
    cases = [test for subject in main.subtests for test in subject.subtests]
    return [(test.name, test.status.name, None) for test in cases + main.subtests]


def lava():
    """LAVA's dispatcher, from the signal on a console to the result that it stores."""
    sys.path.insert(0, f"{readers}/lava/usr/lib/python3/dist-packages")
    from lava_dispatcher.actions.test import shell
    from lava_dispatcher.connection import SignalMatch

    action = shell.TestShellAction()
    action._reset_patterns()
    cases = []
    for line in text.splitlines():
        signal = re.fullmatch(action.patterns["signal"], line)
        if not signal or signal.group(1) != "TESTCASE":
            sys.exit(f"no signal of a case: {line}")
        parameters = shell.handle_testcase(signal.group(2).split())
        found = SignalMatch().match(parameters)
        cases.append((found["test_case_id"], found["result"], found.get("measurement")))
    return cases


def kcidb():
    """The package kcidb-io, by which KernelCI checks what it is sent."""
    sys.path.insert(0, f"{readers}/kcidb")
    import kcidb_io

    data = kcidb_io.schema.V5_3.validate(json.loads(text))
    return [
        (test["path"], test["status"], test.get("number", {}).get("value"))
        for test in data["tests"]
    ]


def rows():
    """Any reader of CSV: each verdict by the names of its columns."""
    return list(csv.DictReader(text.splitlines(keepends=True), strict=True))


json.dump({"csv": rows, "ktap": ktap, "lava": lava, "kcidb": kcidb}[form](), sys.stdout)
