"""``python -m saddleback`` and the ``saddleback`` command: so little that Ctrl-C is clean from the first moment."""

import sys


def main() -> None:
    """Load and run the command line."""
    try:
        from saddleback.cli import main as command_line
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    command_line()


if __name__ == "__main__":
    main()
