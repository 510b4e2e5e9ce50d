"""Tasks that log by the standard library; the test gives the database by the environment."""

import asyncio
import logging
import threading
from contextvars import copy_context

from headrace import App, current

app = App()
logger = logging.getLogger("shop.orders")


@app.task
async def on_the_loop() -> None:
    logger.debug("not kept")
    logger.info("order %d", 7)
    logging.getLogger("headrace.store").warning("the engine's own")
    logger.warning("password=hunter2")
    await asyncio.to_thread(logger.error, "from a thread")
    try:
        raise ValueError("broken")
    except ValueError:
        logger.exception("it failed")
    current.stream("value")


@app.task(executor="thread")
def in_a_thread() -> None:
    logger.info("in a thread")
    beside = threading.Thread(target=copy_context().run, args=(logger.info, "beside it"))
    beside.start()
    beside.join()
    nobodys = threading.Thread(target=logger.info, args=("of no task",))
    nobodys.start()
    nobodys.join()


@app.task
def in_a_child() -> None:
    logger.info("in a child")
    current.log("by current")
    current.stream({"from": "a child"})
    logger.info("arguments that do not fit: %d", "x")
