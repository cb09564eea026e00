"""Where figures come from: no figure is reported without its commit and versions."""

import platform

from benchmark.runs.provenance import code_version, package_versions


def facts_of() -> dict[str, str]:
    """The commit (and whether files were changed after it) and the versions of packages, Python and system."""
    code, shown = code_version(), ("torch", "transformers", "numpy")
    versions = [f"{name} {number}" for name, number in package_versions().items() if name in shown]
    changed = ", with uncommitted changes" if code["dirty"] else ""
    return {
        "textbench": f"{code['version']}, commit {(code['commit'] or 'unknown')[:12]}{changed}",
        "versions": ", ".join(versions),
        "Python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
    }
