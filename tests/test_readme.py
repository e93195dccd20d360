"""The README's example runs, and says what a reader would see."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_example_runs(capsys):
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S).group(1)
    exec(compile(code, "README.md", "exec"), {})
    assert "Status.SOLVED" in capsys.readouterr().out
