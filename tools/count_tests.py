"""Prints how many tests of a ctest JUnit report passed, failed and were skipped. usage: count_tests.py REPORT"""
import sys
import xml.etree.ElementTree as ElementTree

suite = ElementTree.parse(sys.argv[1]).getroot()
total, failed = int(suite.get("tests")), int(suite.get("failures"))
skipped = int(suite.get("skipped", 0)) + int(suite.get("disabled", 0))
print(total - failed - skipped, failed, skipped)
