"""What `Dockerfile` says, read from it, so that a check of the image cannot say something else.

An instruction that is not known here is an error: the check has to be taught it, or it would check another image."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from service import ROOT, TARGET

DOCKERFILE = ROOT / "Dockerfile"
# Of a stage that is not the last one: they shape what is built, and the build command is looked at as a whole.
OF_THE_BUILD = {"FROM", "WORKDIR", "COPY", "RUN"}


@dataclass(frozen=True)
class Copy:
    """`COPY --from=STAGE [--chown=OWNER] SOURCE TARGET`."""

    source: str
    target: str
    owner: str


@dataclass
class Image:
    """The last stage."""

    base: str
    copies: list[Copy] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    user: str = ""
    entrypoint: list[str] = field(default_factory=list)
    health_check: list[str] = field(default_factory=list)
    port: int = 0
    stop_signal: str = "SIGTERM"


@dataclass(frozen=True)
class Dockerfile:
    builder: str
    build_commands: str
    image: Image


def instructions(text: str) -> list[tuple[str, str]]:
    """Each instruction with its arguments; comments are left out and continued lines are one."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in whole.splitlines() if line.strip()]


def options(arguments: str) -> tuple[dict[str, str], str]:
    """The leading `--name=value`s, and what follows them."""
    found = {}
    while match := re.match(r"--(\S+?)=(\S+)\s+", arguments):
        found[match[1]] = match[2]
        arguments = arguments[match.end() :]
    return found, arguments


def read(path: Path = DOCKERFILE) -> Dockerfile:
    stages: list[list[tuple[str, str]]] = []
    for name, arguments in instructions(path.read_text()):
        if name == "FROM":
            stages.append([])
        stages[-1].append((name, arguments))
    assert len(stages) == 2, "a stage that builds, and the image"
    build, last = stages
    unknown = {name for name, _ in build} - OF_THE_BUILD
    assert not unknown, f"{path.name}: teach tests/e2e/dockerfile.py {unknown}"
    commands = " && ".join(options(arguments)[1] for name, arguments in build if name == "RUN")
    builder, stage = re.fullmatch(r"(\S+) AS (\S+)", build[0][1]).groups()
    return Dockerfile(builder, " ".join(commands.split()), image_of(last, stage))


def image_of(stage: list[tuple[str, str]], build: str) -> Image:
    image = Image(base=stage[0][1])
    for name, arguments in stage[1:]:
        match name:
            case "COPY":
                chosen, files = options(arguments)
                assert chosen.pop("from") == build, "the image gets files from the build alone"
                owner = chosen.pop("chown", "0:0")
                assert not chosen, f"COPY: teach tests/e2e/dockerfile.py {chosen}"
                image.copies.append(Copy(*files.split(), owner))
            case "ENV":
                image.environment |= dict(pair.split("=", 1) for pair in arguments.split())
            case "USER":
                image.user = arguments
            case "ENTRYPOINT":
                image.entrypoint = json.loads(arguments)
            case "HEALTHCHECK":
                image.health_check = json.loads(arguments[arguments.index("CMD") + len("CMD") :])
            case "EXPOSE":
                image.port = int(arguments)
            case "STOPSIGNAL":
                image.stop_signal = arguments
            case _:
                raise AssertionError(f"{name}: teach tests/e2e/dockerfile.py")
    return image


def built(dockerfile: Dockerfile, path: str) -> Path | None:
    """The file here that the build puts to `path` there: its commands say which one that is, and how it is made. `None`
    for an empty folder."""
    commands = f"{dockerfile.build_commands} "
    if f" && mkdir {path} " in commands:
        return None
    binary = re.search(rf"cp target/release/(\S+) {re.escape(path)} ", commands)
    assert binary, f"{path} is not what `{commands}` leaves"
    assert f"cargo build --locked --release --package {binary[1]} " in commands, commands
    return TARGET / "release" / binary[1]
