"""What every `--help` has below its options: examples that can be typed."""

from headrace.cli.failures import EXIT_CODES


def examples(*lines: str) -> str:
    """The epilog of a command. Each line stands alone; a test parses them all."""
    return "\n".join([f"Example{'s' if len(lines) > 1 else ''}:", *(f"  {line}" for line in lines)])


def root_epilog() -> str:
    typed = examples(
        "headrace up tasks:app",
        "headrace enqueue tasks:app tasks.welcome user_id=7 --wait",
        "headrace top --database postgresql://me@localhost/shop",
        "headrace doctor tasks:app",
    )
    codes = "\n".join(f"  {code:<3}  {meaning}" for code, meaning in EXIT_CODES.items())
    return f"{typed}\n\nExit codes:\n{codes}"
