"""Plots as SVG, without a library: lines over one or two logarithmic axes."""
import html
import math

WIDTH, HEIGHT = 640, 380
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 36, 48
COLOURS = ["#0b6e4f", "#c1121f", "#1d4ed8", "#b45309", "#6d28d9", "#475569", "#0e7490", "#be185d", "#4d7c0f", "#7c2d12", "#a16207"]


class Axis:
    def __init__(self, values, start, end, title, logarithmic=True):
        self.start, self.end, self.title, self.logarithmic = start, end, title, logarithmic
        low, high = min(values), max(values)
        if logarithmic:
            self.low, self.high = math.floor(math.log10(low)), math.ceil(math.log10(high))
            self.high = max(self.high, self.low + 1)
            self.ticks = [10.0**power for power in range(self.low, self.high + 1)]
        else:
            self.low, self.high = low, high if high > low else low + 1
            self.ticks = sorted(set(values))

    def __call__(self, value):
        place = math.log10(value) if self.logarithmic else value
        return self.start + (place - self.low) / (self.high - self.low) * (self.end - self.start)


def number(value):
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def time(microseconds):
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:g} {unit}"
    return f"{microseconds:g} µs"


def beside(ends):
    """Where names go, so that each is beside the end of its curve and none covers another."""
    places, last = {}, -math.inf
    for name, y in sorted(ends.items(), key=lambda end: end[1]):
        places[name] = last = max(y, last + 16)
    return places


def text(x, y, words, anchor="start", more=""):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" {more}>{html.escape(words)}</text>'


def line_chart(title, x_title, y_title, series, labels=None, unit=number):
    """`series`: name -> [(x, y)], all above zero. `labels`: tick -> text, for an x axis by position. `unit` writes y's ticks."""
    points = [point for line in series.values() for point in line]
    across = Axis([x for x, _ in points], LEFT, WIDTH - RIGHT, x_title, logarithmic=labels is None)
    up = Axis([y for _, y in points], HEIGHT - BOTTOM, TOP, y_title)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
             f'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="#fff"/>',
             text(LEFT, 20, title, more='font-size="14" font-weight="bold"')]
    for tick in up.ticks:
        parts.append(f'<path d="M{LEFT} {up(tick):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(text(LEFT - 6, up(tick) + 4, unit(tick), "end"))
    for tick in across.ticks:
        parts.append(f'<path d="M{across(tick):.1f} {HEIGHT - BOTTOM}v4" stroke="#333"/>')
        parts.append(text(across(tick), HEIGHT - BOTTOM + 18,
                          labels[tick] if labels else number(tick), "middle"))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_title, "middle"))
    parts.append(text(0, 0, y_title, "middle",
                      f'transform="translate(14 {(TOP + HEIGHT - BOTTOM) / 2:.0f}) rotate(-90)"'))
    names = beside({name: up(line[-1][1]) for name, line in series.items()})
    for place, (name, line) in enumerate(series.items()):
        colour = COLOURS[place % len(COLOURS)]
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="2.5" fill="{colour}"/>'
                  for x, y in line]
        parts.append(text(across(line[-1][0]) + 12, names[name] + 4, name,
                          more=f'fill="{colour}" font-weight="bold"'))
    return "\n".join(parts) + "\n</svg>\n"


def waits(workload, title):
    """Waits by share of grants; the axis is stretched towards the rare ones."""
    shares = [0.5, 0.9, 0.99, 0.999, 0.9999]
    places = {-math.log10(1 - share): f"{share * 100:g} %" for share in shares}
    series = {}
    for name, peer in sorted(workload["peers"].items(), key=lambda item: item[0] != "holdfast"):
        series[name] = [(-math.log10(1 - share), max(wait, 0.1))
                        for share, wait in peer["curve"] if share in shares]
    return line_chart(title, "share of grants that waited no longer", "wait", series, places, time)


def draw_peers(workloads, folder):
    titles = {"redis-1": "Redis, 1 thread: wait for a grant",
              "redis-64-own": "Redis, 64 threads, a lock each: wait for a grant",
              "redis-16-same": "Redis, 16 threads, one lock: wait for a grant",
              "redis-16-processes": "Redis, 16 processes, one lock: wait for a grant",
              "zookeeper-16-same": "ZooKeeper, 16 threads, one lock: wait for a grant"}
    for one in workloads:
        if one["name"] in titles:
            path = folder / f"waits-{one['name']}.svg"
            path.write_text(waits(one, titles[one["name"]]))
