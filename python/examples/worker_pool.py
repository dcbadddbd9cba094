"""Requests of an asyncio server: each customer's orders one at a time, and at most three calls to the partner at once."""
import asyncio
import sys

import holdfast

partner_calls = 0


async def call_partner(client):
    global partner_calls
    async with client.semaphore("partner-api", 3, wait=30):
        partner_calls += 1
        await asyncio.sleep(0.001)


async def handle(client, customer, balances):
    """One request."""
    async with client.lock(f"customer/{customer}", wait=30) as lease:
        async with lease.guard():  # ends the request if the lock is lost
            before = balances[customer]
            await call_partner(client)
            balances[customer] = before + 1


async def main(url):
    client = holdfast.connect(url)
    balances = dict.fromkeys(range(5), 0)
    try:
        await asyncio.gather(*(handle(client, request % 5, balances) for request in range(100)))
    finally:
        await asyncio.to_thread(client.close)
    print(sum(balances.values()), "requests booked,", partner_calls, "calls to the partner")


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "memory:"))
