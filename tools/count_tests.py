#!/usr/bin/env python3
"""Prints "PASSED FAILED" for a JUnit report as ctest and pytest write it; a skipped test is neither."""
import sys
import xml.etree.ElementTree as ElementTree


def main() -> None:
    passed = failed = 0
    for case in ElementTree.parse(sys.argv[1]).iter("testcase"):
        outcome = {child.tag for child in case}
        if outcome & {"failure", "error"} or case.get("status") == "fail":
            failed += 1
        elif "skipped" not in outcome:
            passed += 1
    print(passed, failed)


if __name__ == "__main__":
    main()
