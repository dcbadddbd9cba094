"""Rates and waits of several processes and rounds put together."""
import collections
import statistics

SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}


def percentiles(cells, longest):
    """Takes [up to this many microseconds, count] in any order."""
    merged = collections.Counter()
    for top, count in cells:
        merged[top] += count
    total = sum(merged.values())
    found = {}
    seen = 0
    wanted = list(SHARES.items())
    for top in sorted(merged):
        seen += merged[top]
        while wanted and seen >= wanted[0][1] * total:
            found[wanted.pop(0)[0]] = min(top, longest)
    found["max"] = longest
    return found


def one_round(answers, seconds, **more):
    """What the processes of one peer counted in one round; `more` is added."""
    grants = [count for answer in answers for count in answer["grants"]]
    cells = [cell for answer in answers for cell in answer["histogram"]]
    if not cells:
        raise RuntimeError("not one grant in a whole round")
    squares = sum(count * count for count in grants)
    return {"grants_per_second": sum(grants) / seconds,
            "fairness": sum(grants) ** 2 / (len(grants) * squares) if squares else 1,
            "acquire_us": percentiles(cells, max(answer["max_us"] for answer in answers)),
            "histogram": cells} | more


def median(values):
    """Over the known values; None if there are none."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def of_rounds(rounds):
    """Medians and the spread; the histogram covers all rounds."""
    rates = [one["grants_per_second"] for one in rounds]
    waits = {name: statistics.median(one["acquire_us"][name] for one in rounds)
             for name in rounds[0]["acquire_us"]}
    merged = collections.Counter()
    for one in rounds:
        for top, count in one["histogram"]:
            merged[top] += count
    made = {"grants_per_second": statistics.median(rates),
            "spread": [min(rates), max(rates)],
            "rounds": rates,
            "fairness": statistics.median(one["fairness"] for one in rounds),
            "acquire_us": waits,
            "p99_spread": [min(one["acquire_us"]["p99"] for one in rounds),
                           max(one["acquire_us"]["p99"] for one in rounds)],
            "client_cpu_us": median(one.get("client_cpu_us") for one in rounds),
            "server_cpu_us": median(one.get("server_cpu_us") for one in rounds),
            "curve": curve(merged)}
    hand_offs = [one["hand_off_us"] for one in rounds if one.get("hand_off_us")]
    if hand_offs:
        made["hand_off_us"] = {name: statistics.median(one[name] for one in hand_offs)
                               for name in (*SHARES, "max")}
    return made


def curve(cells):
    """The waits at these shares of all grants: enough to draw, and small to store."""
    shares = [0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999]
    total = sum(cells.values())
    points = []
    seen = 0
    for top in sorted(cells):
        seen += cells[top]
        while shares and seen >= shares[0] * total:
            points.append([shares.pop(0), round(top, 1)])
    return points
