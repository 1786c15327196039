"""A real object storage on loopback: s3s, which speaks S3, checks signatures, and keeps each object as a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from running import Running, free_port
from service import TARGET
from skipping import skip

PROGRAM = TARGET / "tools" / "s3s" / "bin" / "s3s-fs"
BUCKET = "reports"
KEY, SECRET = "AKIDEXAMPLE", "hunter2secret"


@dataclass
class S3(Running):
    """The storage with one bucket."""

    port: int = 0

    def start(self) -> None:
        if not PROGRAM.exists():
            skip(f"{PROGRAM.name}, because scripts/install-test-tools did not install it")
        self.port = self.port or free_port()
        self.root.joinpath(BUCKET).mkdir(parents=True, exist_ok=True)
        address = ["--host", "127.0.0.1", "--port", str(self.port)]
        self.launch([PROGRAM, *address, "--access-key", KEY, "--secret-key", SECRET, self.root])

    def is_ready(self) -> bool:
        # Nobody may list buckets without a signature.
        return self.get("/").status == 403

    @property
    def root(self) -> Path:
        return self.directory / "objects"

    def objects(self, ending: str) -> list[Path]:
        """The objects whose names end so, the latest last."""
        return sorted((self.root / BUCKET).rglob(f"[0-9]*{ending}"))

    def address(self, file: Path) -> str:
        return f"s3://{file.relative_to(self.root)}"


def variables(port: int, secret: str = SECRET, scheme: str = "http") -> dict[str, str]:
    """What makes a service put its reports there."""
    return {
        "MEMRAY_PROFILER_STORE": f"s3://{BUCKET}/prod/eu",
        "AWS_ENDPOINT_URL": f"{scheme}://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_REGION": "us-east-1",
        # A name of the machine's own would lead elsewhere.
        "NO_PROXY": "*",
    }
