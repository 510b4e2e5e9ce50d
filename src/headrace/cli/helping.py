"""What every `--help` has below its options: examples that can be typed."""

from headrace.cli.failures import EXIT_CODES


def examples(*lines: str) -> str:
    """The epilog of a command. Each line stands alone; a test parses them all."""
    return "\n\n".join([f"Example{'s' if len(lines) > 1 else ''}:", *lines])


def root_epilog() -> str:
    codes = [f"{code}  {meaning}" for code, meaning in EXIT_CODES.items()]
    return "\n\n".join(
        [
            examples(
                "headrace up tasks:app",
                "headrace enqueue tasks:app tasks.welcome user_id=7 --wait",
                "headrace top --database postgresql://me@localhost/shop",
                "headrace doctor tasks:app",
            ),
            "Exit codes:",
            *codes,
        ]
    )
