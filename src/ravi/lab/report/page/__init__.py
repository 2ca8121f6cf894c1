"""The page of a folder of results: one HTML file that needs no network."""

from ravi.lab.report.page.build import report

__all__ = ["report"]
