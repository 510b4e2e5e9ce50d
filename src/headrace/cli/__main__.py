"""`python -m headrace.cli` is the `headrace` command."""

from headrace.cli import main

if __name__ == "__main__":
    main()
