"""Checks the files in this folder: sound YAML, known actions pinned to a version, and every command one that `make` has.

    python check.py [ACTIONLINT]      # `make workflows` runs it
"""

import re
import subprocess
import sys
from pathlib import Path

import yaml

HERE = Path(__file__).parent
ROOT = HERE.parent


def problems():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    oldest = re.search(r'rust-version = "([\d.]+)"', (ROOT / "Cargo.toml").read_text())[1]
    toolchains = set()
    for path in sorted(HERE.rglob("*.yml")):
        name = path.relative_to(ROOT)
        content = yaml.safe_load(path.read_text())
        if path.parent.name != "workflows":
            continue
        # YAML 1.1 reads the key `on` as true.
        if not content.get("name") or not (content.get("on") or content.get(True)):
            yield f"{name}: a workflow needs a name and `on`"
        for key, job in content["jobs"].items():
            place = f"{name}, job {key}"
            if "runs-on" not in job or "timeout-minutes" not in job:
                yield f"{place}: needs runs-on and timeout-minutes"
            for needed in job.get("needs", []):
                if needed not in content["jobs"]:
                    yield f"{place}: needs {needed}, which does not exist"
            for step in job["steps"]:
                if ("uses" in step) == ("run" in step):
                    yield f"{place}: a step has either uses or run: {step}"
                if "uses" in step:
                    if not re.fullmatch(r"[\w.-]+/[\w./-]+@[\w./-]+", step["uses"]):
                        yield f"{place}: {step['uses']} is not pinned to a version"
                    if step["uses"].startswith("dtolnay/rust-toolchain@"):
                        toolchains.add(step["uses"].split("@")[1])
                for line in step.get("run", "").splitlines():
                    words = line.split()
                    if words[0] != "make" or not set(words[1:]) <= targets:
                        yield f"{place}: `{line}` is not a target of the Makefile"
    if oldest not in toolchains:
        yield f"no job uses the oldest supported Rust, {oldest}"


found = list(problems())
for problem in found:
    print(problem)
if len(sys.argv) > 1 and Path(sys.argv[1]).exists():
    found += ["actionlint"] * subprocess.run([sys.argv[1]], cwd=ROOT).returncode
else:
    print("actionlint is not installed; only our own checks ran")
print("workflows: sound" if not found else f"workflows: {len(found)} problems")
sys.exit(bool(found))
