"""README is one page with two pictures: the report of a real run, and a figure."""

import re
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PICTURES = re.findall(r'<img src="([^"]+)" width="(\d+)%" alt="([^"]+)">', README)


def test_the_report_stands_beside_a_figure_on_the_first_screen():
    assert [Path(path).name for path, _, _ in PICTURES] == ["report.png", "row_splits.png"]
    assert sum(int(width) for _, width, _ in PICTURES) < 100, "they stand side by side"
    assert README.index("<img") < README.index("| paper |") < README.index("## Replicate")
    for path, _, text in PICTURES:
        assert len(text) > 40
        assert (ROOT / path).stat().st_size < 300_000
        with Image.open(ROOT / path) as picture:
            assert picture.width > 1000


def test_readme_is_one_page():
    assert len(README.splitlines()) < 120
    assert "make reproduce" in README and "import metabo" in README and "make install" in README
