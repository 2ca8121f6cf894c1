"""An HTML page as a parser reads it: what is on it, and whether its elements are closed in order."""

from html.parser import HTMLParser

VOID = ("meta", "link", "input", "br")


class Read(HTMLParser):
    """What is on a page, and whether its elements are closed in order."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.text, self.scripts, self.tables = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs), tuple(self.open)))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")
        if tag not in VOID and not (self.open and self.open[-1] == "svg" and tag == "line"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        inside = self.open[-1] if self.open else ""
        if "td" in self.open or "th" in self.open:
            self.tables[-1][-1][-1] += data
        (self.scripts if inside == "script" else self.text).append(data)

    def words(self):
        return " ".join("".join(self.text).split())

    def table(self, *heads):
        """The first table with these headings, as rows of texts."""
        found = next(rows for rows in self.tables if set(heads) <= {cell.strip() for cell in rows[0]})
        return [[" ".join(cell.split()) for cell in row] for row in found]

    def of(self, tag):
        return [attrs for name, attrs, _ in self.tags if name == tag]
