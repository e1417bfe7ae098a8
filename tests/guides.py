"""A guide of docs/ as its reader follows it: the file to be saved, and the commands."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Guide:
    """The guide `name`, whose example is written in `language` and whose folder is named by `setting`."""

    name: str
    language: str
    setting: str

    @cached_property
    def text(self) -> str:
        return (ROOT / "docs" / self.name).read_text("utf-8")

    @cached_property
    def example(self) -> str:
        (found,) = re.findall(rf"^~~~~{self.language}\n(.*?)^~~~~$", self.text, re.DOTALL | re.MULTILINE)
        return str(found)

    @cached_property
    def commands(self) -> tuple[str, str, str]:
        """Those that make the folder, check what is in it, and start the app."""
        without = re.sub(r"~~~~.*?~~~~", "", self.text, flags=re.DOTALL)
        folder, check, start = re.findall(r"^```sh\n(.*?)^```$", without, re.DOTALL | re.MULTILINE)
        return folder, check, start

    @cached_property
    def file(self) -> str:
        """Where the example is to be saved."""
        (found,) = re.findall(r"Save this as `([^`]+)`", self.text)
        return str(found)

    def followed(self, where: Path) -> str:
        """Carry the first steps out; what the setting is then."""
        for name in ("dpsim", "examples"):
            (where / name).symlink_to(ROOT / name)
        said = subprocess.run(
            ["bash", "-euc", f'{self.commands[0]}\nprintf %s "${self.setting}"'],
            cwd=where,
            capture_output=True,
            text=True,
            check=True,
        )
        (where / self.file).write_text(self.example, "utf-8")
        return str(where / said.stdout)

    def checked(self, where: Path) -> subprocess.CompletedProcess[str]:
        """What the command for the check says."""
        command = self.commands[1].replace("python ", f"{sys.executable} ", 1)
        return subprocess.run(
            ["bash", "-euc", command], cwd=where, capture_output=True, text=True, check=False
        )
