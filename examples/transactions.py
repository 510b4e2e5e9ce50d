"""The order and its task are written by one commit, or by none."""

import sqlite3
import sys

from headrace import App

app = App("sqlite:///transactions.db")


@app.task
async def send_receipt(order: int) -> str:
    return f"receipt for order {order}"


def place_order(connection: sqlite3.Connection, *, pays: bool) -> None:
    connection.execute("BEGIN IMMEDIATE")
    order = connection.execute("INSERT INTO orders DEFAULT VALUES RETURNING id").fetchone()[0]
    send_receipt.using(connection=connection).enqueue(order=order)
    if pays:
        connection.execute("COMMIT")
    else:
        connection.execute("ROLLBACK")


if __name__ == "__main__":
    if "--results" in sys.argv:
        for record in app.tasks.list():
            print(record.name, record.state, record.result)
    else:
        app.upgrade()
        database = sqlite3.connect("transactions.db", isolation_level=None)
        database.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY)")
        place_order(database, pays=True)
        place_order(database, pays=False)
