"""Packages of the environment, in order: pip, the right build of torch, the other packages, Rankdeck itself."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.environments.pip_environment import clean, source_options, wheels_folder
from core.machine.torch_builds import (
    ENV_TORCH_INDEX,
    choose_build,
    has_nvidia_driver,
    pinned_torch_version,
    read_driver,
    torch_sources,
)
from installer.console import ProgressLine, SetupError, run_logged
from installer.pip_run import Pip, PipError
from installer.qt_libraries import apt_command, apt_install, is_debian, is_root

if TYPE_CHECKING:
    from installer.environment import Environment

# Extras with what single recipes need; about 100 MB. Where they cannot be had, all others train without.
OF_RECIPES: Final = frozenset({"hf", "rl"})
_VENV_LIMIT_S: Final = 300.0
_DEEPSPEED: Final = "deepspeed"
_PIP_OPTIONS: Final = ("--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--retries", "3")


def create_venv(environment: Environment, progress: ProgressLine) -> None:
    """Make the environment with a pip in it.

    Raises:
        SetupError: This Python has no `ensurepip`.
    """
    progress.say("creating .venv")
    if importlib.util.find_spec("ensurepip") is None:
        package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        if is_debian() and is_root():
            apt_install([package], progress, environment.log)
        else:
            step = f"Run: {apt_command([package])}" if is_debian() else "Install ensurepip for this Python."
            raise SetupError("This Python cannot create environments", "Its ensurepip is missing.", step, exit_code=3)
    _run_venv(environment)


def _run_venv(environment: Environment) -> None:
    # An environment made by an environment's own Python would hang on it: take the one that it came from.
    python = getattr(sys, "_base_executable", None) or sys.executable
    command = [python, "-m", "venv", str(environment.folder)]
    code = run_logged(command, environment.log, _VENV_LIMIT_S, clean(os.environ), pass_fds=environment.inherited)
    if code:
        tail = "\n".join(environment.log.read_text(encoding="utf-8", errors="replace").splitlines()[-8:])
        raise SetupError(
            "The environment cannot be created",
            f"`{' '.join(command)}` ended with code {code}:\n{tail}",
            "Check that this Python is complete (`python -m ensurepip --version`) and that the disk is not full.",
        )


def install_packages(environment: Environment, extras: frozenset[str], progress: ProgressLine) -> None:
    """Install the pinned requirements and the project itself; raises `PipError`."""
    constraints = environment.root / "constraints.txt"
    project = tomllib.loads((environment.root / "pyproject.toml").read_text(encoding="utf-8"))
    held = project["project"]["optional-dependencies"]
    requirements = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    requirements += [line for extra in sorted(extras - OF_RECIPES) for line in held[extra]]
    of_recipes = [line for extra in sorted(extras & OF_RECIPES) for line in held[extra]]
    deepspeed = [line for line in requirements if re.match(rf"{_DEEPSPEED}\b", line)]
    wheels = wheels_folder(os.environ)
    install = ("install", *_PIP_OPTIONS, *source_options(wheels, None), "-c", str(constraints))

    pip = Pip(environment.python, environment.log, environment.folder / "tmp", environment.inherited)
    _install_torch(pip, constraints, wheels, progress)
    progress.say("installing the other packages")
    needed = [*install, "--only-binary", ":all:", *(line for line in requirements if line not in deepspeed)]
    try:
        pip.run([*needed, *of_recipes], progress)
    except PipError as error:
        if not error.missing or not of_recipes:
            raise
        pip.run(needed, progress)
        progress.say(f"Some recipes cannot be trained: their packages could not be installed. {error.cause}")
    if deepspeed:
        _install_deepspeed(pip, install, deepspeed, progress, needed=_DEEPSPEED in extras)
    progress.say("installing Rankdeck from this checkout")
    pip.run([*install, "--no-deps", "--no-build-isolation", "--editable", str(environment.root)], progress)
    name_checkout_relatively(environment.site_packages)
    shutil.rmtree(pip.scratch, ignore_errors=True)


def name_checkout_relatively(site_packages: Path) -> None:
    """Make the folders in the editable install's ``.pth`` file relative to it, so that the file is plain ASCII.

    Build backends write it in UTF-8. Before Python 3.13 `site` reads it in Windows' code page, so a checkout below
    ``C:\\Users\\Jürgen`` would be installed and not found: https://github.com/python/cpython/issues/77102
    """
    for path in site_packages.glob("*rankdeck*.pth"):
        folders = [Path(line).resolve() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        base = site_packages.resolve()
        lines = [os.path.relpath(folder, base).replace(os.sep, "/") for folder in folders]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii", newline="\n")


def _install_deepspeed(
    pip: Pip, install: Sequence[str], requirements: Sequence[str], progress: ProgressLine, *, needed: bool
) -> None:
    """Install it by itself: for Linux there is only its source, of which pip makes a wheel without a compiler.

    Raises:
        PipError: pip failed, and it is `needed`. Otherwise ZeRO runs on PyTorch's own engine.
    """
    progress.say("installing DeepSpeed")
    source = ("--no-binary", _DEEPSPEED) if sys.platform == "linux" else ()
    try:
        pip.run([*install, "--only-binary", ":all:", *source, *requirements], progress)
    except PipError as error:
        if needed:
            raise
        progress.say(f"DeepSpeed could not be installed, so ZeRO uses PyTorch's own engine. {error.cause}")


def _install_torch(pip: Pip, constraints: Path, wheels: Path | None, progress: ProgressLine) -> None:
    """Try the places that may have the right build, best first."""
    version = pinned_torch_version(constraints.read_text(encoding="utf-8"))
    build = choose_build(read_driver() if has_nvidia_driver(sys.platform) else None)
    progress.say(" ".join(part for part in (f"{build.title}:", build.reason, build.advice) if part))
    sources = torch_sources(sys.platform, version, build.tag, os.environ.get(ENV_TORCH_INDEX) or None)
    failure: PipError | None = None
    for source in sources:
        progress.say(f"installing {source.label}")
        index = source_options(wheels, source.index)
        command = ["install", *_PIP_OPTIONS, "--only-binary", ":all:", "--no-deps", *index, source.requirement]
        try:
            pip.run(command, progress)
        except PipError as error:
            if not error.missing:
                raise
            failure = error
        else:
            return
    if failure is not None:
        raise failure
