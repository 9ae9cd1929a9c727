"""The `askgraph` command: puts the service on this process's path and runs its command line."""

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def main() -> None:
    """Run the command line.

    The service is the packages `app`, `graphs`, `nodes` and `domain`. An installation keeps them in `_service`, where
    no import of another program finds them; a checkout has them beside this package.
    """
    installed = _HERE / "_service"
    sys.path.insert(0, str(installed if installed.is_dir() else _HERE.parent))
    if sys.platform == "win32":
        sys.exit(
            "askgraph serves on Linux and macOS. On Windows, run it in WSL 2 or in a container; the client works here."
        )
    from app.cli import main as run_command

    run_command()


if __name__ == "__main__":
    main()
