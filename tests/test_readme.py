"""The README tells the truth: its snippet is a file that runs, its links and commands exist."""

import re
import runpy
from pathlib import Path

from PIL import Image

from certiseg.cli import COMMANDS
from certiseg.datasets import open_dataset

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_five_lines_are_a_file_that_runs(tmp_path, monkeypatch, capsys):
    snippet = README.split("```python\n")[1].split("```")[0]
    assert (ROOT / "examples/quickstart.py").read_text().endswith(snippet)
    Image.fromarray(open_dataset("streets")[0].image[:208, :112]).save(tmp_path / "street.png")
    monkeypatch.chdir(tmp_path)
    result = runpy.run_path(str(ROOT / "examples/quickstart.py"))
    assert "With probability at least 0.999" in capsys.readouterr().out
    assert result["cert"].vertex.shape == (208, 112)


def test_the_house_table_names_every_room():
    table = README.split("| in `src/certiseg` |")[1].split("\n\n")[0]
    named = set(re.findall(r"`([\w.]+/?)`", table.split("---|")[-1]))
    package = ROOT / "src/certiseg"
    files = [path.relative_to(package) for path in package.rglob("*.*") if "__pycache__" not in path.parts]
    rooms = {path.parts[0] + "/" * (len(path.parts) > 1) for path in files}
    assert named == rooms - {"__init__.py", "__main__.py", "py.typed"}


def test_commands_and_targets_exist():
    named = set(re.findall(r"`certiseg (\w+)", README))
    assert named >= set(COMMANDS)
    assert named <= set(COMMANDS)
    targets = set(re.findall(r"make ([a-z-]+)", README)) - {"to"}
    makefile = (ROOT / "Makefile").read_text()
    assert [target for target in targets if f"\n{target}:" not in makefile] == []
