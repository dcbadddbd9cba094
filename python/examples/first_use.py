"""A first use: a lock by name, its fencing token, and what happens when it is taken."""
import sys

import holdfast

client = holdfast.connect(sys.argv[1] if len(sys.argv) > 1 else None)  # nothing: a file of this user
stock = client.lock("stock/42", wait=1.0, ttl=10)

with stock as lease:  # waits at most a second; released at the end
    print("order written with fence", lease.fence)
    try:
        client.lock("stock/42").acquire(wait=0)
    except holdfast.Busy as problem:
        print("second attempt:", type(problem).__name__)

greatest = 0


def write(order, fence):
    """What a database does with fences: it refuses those that are behind."""
    global greatest
    if fence < greatest:
        raise RuntimeError(f"{order}: fence {fence} is behind {greatest}")
    greatest = fence


late = lease.fence
with stock as lease:
    write("new order", lease.fence)
try:
    write("late order", late)  # a holder that was paused comes back
except RuntimeError:
    print("the late writer is refused")
