"""What does a folder of results say? One page of HTML that needs nothing else: `report(folder)`."""

from ravi.lab.report.page.build import report

__all__ = ["report"]
