"""The README tells the truth: its snippet is a file that runs, its links and commands exist."""

import re
import runpy
from pathlib import Path

from PIL import Image

from certiseg.cli import COMMANDS
from certiseg.datasets.streets import street

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_five_lines_are_a_file_that_runs(tmp_path, monkeypatch, capsys):
    snippet = README.split("```python\n")[1].split("```")[0]
    assert (ROOT / "examples/quickstart.py").read_text().endswith(snippet)
    Image.fromarray(street(1, height=208, width=112)[0]).save(tmp_path / "street.png")
    monkeypatch.chdir(tmp_path)
    result = runpy.run_path(str(ROOT / "examples/quickstart.py"))
    assert "With probability at least 0.999" in capsys.readouterr().out
    assert result["cert"].vertex.shape == (208, 112)


def test_links_lead_somewhere():
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if not link.startswith("http")]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_commands_and_targets_exist():
    named = set(re.findall(r"`certiseg (\w+)", README))
    assert named >= set(COMMANDS)
    assert named <= set(COMMANDS)
    targets = set(re.findall(r"make ([a-z-]+)", README)) - {"to"}
    makefile = (ROOT / "Makefile").read_text()
    assert [target for target in targets if f"\n{target}:" not in makefile] == []
