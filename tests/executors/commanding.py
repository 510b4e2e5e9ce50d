"""A process that runs one command until it is killed; its arguments are a directory and argv as JSON."""

import asyncio
import json
import sys
from pathlib import Path

from headrace.core import payload
from headrace.core.retry import Retry
from headrace.executors.base import Launch, Limits
from headrace.executors.command import CommandExecutor
from headrace.testing.executor_conformance import Stand, claimed


async def main(directory: str, argv: str) -> None:
    arguments = payload.dumps({"argv": json.loads(argv)})
    claim = claimed(1, "a command", arguments, kind="command", pool="command")
    launch = Launch(claim=claim, entry=None, options={}, limits=Limits(), policy=Retry())
    async with Stand.open(
        lambda slots, host: CommandExecutor(concurrency=1, slots=slots, host=host),
        Path(directory),
        command=lambda name: [name],
    ) as stand:
        await stand.executor.run(launch)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
