"""At most two at once, strictly in order per account, and never longer than allowed."""

import sys
import time
from datetime import timedelta

from headrace import App, Limit, Retry, SoftTimeLimitExceeded

app = App("sqlite:///limits_and_order.db")


@app.task(limit=Limit(2, key="printer"))
async def print_page(page: int) -> int:
    return page


@app.task(order_key="account-{account}")
async def post(account: str, amount: int) -> int:
    return amount


@app.task(soft_timeout=0.5, timeout=timedelta(seconds=10), retry=Retry(max_attempts=1))
def report() -> str:
    try:
        while True:
            time.sleep(0.01)
    except SoftTimeLimitExceeded:
        return "stopped in time, with what was ready"


if __name__ == "__main__":
    if "--results" in sys.argv:
        for record in app.tasks.list():
            print(record.name, record.state, record.result)
    else:
        print_page.enqueue_many({"page": page} for page in range(6))
        for amount in (10, -3, 5):
            post.enqueue(account="a", amount=amount)
        report.enqueue()
