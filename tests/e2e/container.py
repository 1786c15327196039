"""Runs the image of `Dockerfile` without a container engine and without downloads: process 1 of its own namespaces, on a
read-only root file system with what the image has and nothing else, as the image's user without rights.

What the base image would bring comes from this machine: the libraries that the binary is linked with, which must be
among those that the base image has. Root is needed to make all this."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dockerfile import Dockerfile, Image, built, read
from running import DEADLINE_SECONDS
from service import ROOT, Service
from skipping import skip

# What is known of the base images: the libraries (Debian's libc6, libgcc-s1, libstdc++6) and what is set for a process.
LIBRARIES = {"gcr.io/distroless/cc-debian12:nonroot": r"(ld-linux|lib(c|m|dl|rt|pthread|resolv|util|gcc_s|stdc\+\+))[-.\w]*"}
BASE_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/home/nonroot"}
DEVICES = ["full", "null", "random", "urandom", "zero"]
MANIFEST = ROOT / "docs" / "containers.md"


@pytest.fixture(scope="module", autouse=True)
def needs_root():
    """For modules that import it: their checks are skipped where they can't run."""
    if os.geteuid() != 0:
        skip("a container can only be made by root")


def linked(program: Path) -> list[Path]:
    """The libraries that it is linked with, the loader among them."""
    said = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    return [Path(library) for library in re.findall(r"(/\S+) \(0x", said)]


def root_file_system(root: Path, dockerfile: Dockerfile | None = None) -> Path:
    """What the image holds."""
    dockerfile = dockerfile or read()
    image = dockerfile.image
    user, group = owner(image.user)
    for folder in ["dev", "etc", "home/nonroot", "proc", "sys", "tmp"]:
        (root / folder).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    os.chown(root / "home/nonroot", user, group)
    (root / "etc/passwd").write_text(f"root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:{user}:{group}::/home/nonroot:\n")
    for device in DEVICES:
        (root / "dev" / device).touch()
    for copied in image.copies:
        target = inside(root, copied.target)
        program = built(dockerfile, copied.source)
        target.parent.mkdir(parents=True, exist_ok=True)
        if program:
            shutil.copy2(program, target)
        else:
            target.mkdir()
        os.chown(target, *owner(copied.owner))
        for library in linked(program) if program else []:
            assert re.fullmatch(LIBRARIES[image.base], library.name), f"{image.base} has no {library.name}"
            inside(root, library).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(library, inside(root, library))
    return root


def owner(text: str) -> tuple[int, int]:
    user, group = text.split(":")
    return int(user), int(group)


def inside(root: Path, path: str | Path) -> Path:
    return root / str(path).lstrip("/")


@dataclass(frozen=True)
class Manifest:
    """What the Kubernetes manifest in the docs sets for the container."""

    user: str
    volume: str
    environment: dict[str, str]

    @staticmethod
    def read() -> Manifest:
        text = MANIFEST.read_text()
        for line in ["readOnlyRootFilesystem: true", "allowPrivilegeEscalation: false", "drop: [ALL]"]:
            assert line in text, f"{MANIFEST}: {line}"
        return Manifest(
            user=re.search(r"runAsUser: (\d+)", text)[1],
            volume=re.search(r"mountPath: ([^ }]+)", text)[1],
            environment=dict(re.findall(r'\{ name: (\w+), value: "?([^" }]+)"? \}', text)),
        )


@dataclass
class Container(Service):
    """A container, from `start` to the end of its process 1. `volumes`: folders here, by their paths there."""

    # A life of it is short.
    pause_seconds = 0.002

    root: Path = Path()
    volumes: dict[str, Path] = field(default_factory=dict)

    def __post_init__(self):
        self.image: Image = read().image
        # The same as for the engine's `-p`: which port it has here does not matter there.
        self.environment = BASE_ENVIRONMENT | self.image.environment | {"PORT": "0"} | self.environment

    def start(self) -> None:
        """Returns when the entry point has begun."""
        # One process from here on: each command gives way to the next.
        self.launch(
            ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in self.environment.items())]
            + ["unshare", "--mount", "--pid", "--fork", "--ipc", "--uts"]
            + ["setpriv", "--no-new-privs", "sh", "-euc", self.script(), "container", *self.image.entrypoint]
        )
        program = Path(self.image.entrypoint[0]).name
        self.pid = self.until(lambda: self.first_process(program), "its process 1 has not begun")

    def script(self) -> str:
        """Makes the file systems that an engine makes, and runs the entry point in them."""
        root = self.root
        flags = "nosuid,nodev,noexec"
        lines = [f"mount --bind {root} {root}"]
        lines += [f"mount --bind {folder} {inside(root, path)}" for path, folder in self.volumes.items()]
        lines += [f"mount --bind /dev/{device} {root}/dev/{device}" for device in DEVICES]
        lines += [
            f"mount -t proc -o {flags} proc {root}/proc",
            f"mount -t tmpfs -o {flags},mode=1777 tmpfs {root}/tmp",
            f"mount --rbind /sys {root}/sys",
            f"mount -o remount,bind,ro {root}/sys",
            f"mount -o remount,bind,ro {root}",
            f'exec chroot --userspec={self.image.user} --groups= {root} "$@"',
        ]
        return "\n".join(lines)

    def first_process(self, program: str) -> int | None:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for pid in children.read_text().split():
            if Path(f"/proc/{pid}/comm").read_text().strip() == program[:15]:
                return int(pid)
        return None

    def is_ready(self) -> bool:
        listens = re.search(r"listens on http://localhost:(\d+)", self.output())
        if listens:
            self.port = int(listens[1])
        return listens is not None and self.get("/live").status == 200

    def run(self, *command: str) -> subprocess.CompletedProcess:
        """Runs a command in the container, as the engine runs the health check."""
        user, group = self.image.user.split(":")
        assert self.process.poll() is None, self.output()
        enter = ["nsenter", f"--target={self.pid}", "--mount", "--pid", "--root", "--wd", "-S", user, "-G", group]
        environment = self.environment | {"PORT": str(self.port)}
        return subprocess.run([*enter, *command], env=environment, capture_output=True, timeout=DEADLINE_SECONDS)

    def kill(self) -> None:
        """What an engine does when patience or memory is at its end."""
        self.signal(signal.SIGKILL)
        self.process.wait(timeout=DEADLINE_SECONDS)

    def terminate(self, with_signal: int | None = None) -> int:
        self.signal(with_signal or signal.Signals[self.image.stop_signal])
        return self.process.wait(timeout=DEADLINE_SECONDS)

    def signal(self, number: int) -> None:
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            pass  # it has ended by itself
