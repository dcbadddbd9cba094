"""Rows as a table for a terminal."""


def span(microseconds):
    if microseconds is None:
        return "-"
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.3g} {unit}"
    return f"{microseconds:.3g} us"


HEAD = ("row", "peer", "grants/s", "(least to most)", "wait p50", "p99", "fairness", "client cpu", "server cpu", "holdfast is")


def show(results):
    rows = [HEAD] if results else []
    for one in results:
        ordered = sorted(one["peers"].items(), key=lambda item: item[0] != "holdfast")
        for name, peer in ordered:
            ratio = peer.get("holdfast_rate_ratio")
            least, most = peer["spread"]
            rows.append((one["name"] if name == ordered[0][0] else "", name,
                         f"{peer['grants_per_second']:,.0f}", f"{least:,.0f} to {most:,.0f}",
                         span(peer["acquire_us"]["p50"]), span(peer["acquire_us"]["p99"]), f"{peer['fairness']:.2f}",
                         span(peer["client_cpu_us"]), span(peer["server_cpu_us"]), f"{ratio:.2f} x" if ratio else ""))
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))] if rows else []
    for row in rows:
        cells = [cell.ljust(width) if i < 2 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))]
        print("  ".join(cells).rstrip())
