"""Results as readable JSON that gives useful diffs: a line for each peer or point."""
import json


def write(path, head, key, items, inner):
    """`head`, then the items under `key`, whose member `inner` (a list or an object) has lines of its own."""
    parts = ["{"]
    parts += [f' "{name}": {json.dumps(value)},' for name, value in head.items()]
    parts.append(f' "{key}": [')
    for number, item in enumerate(items):
        rest = json.dumps({name: value for name, value in item.items() if name != inner})
        inside = item[inner]
        if isinstance(inside, dict):
            lines = [f'   {json.dumps(name)}: {json.dumps(value)}' for name, value in inside.items()]
        else:
            lines = [f"   {json.dumps(value)}" for value in inside]
        opening, closing = "{}" if isinstance(inside, dict) else "[]"
        parts.append(f'  {rest[:-1]}, "{inner}": {opening}')
        parts.append(",\n".join(lines))
        parts.append(f"  {closing}}}" + ("," if number + 1 < len(items) else ""))
    parts += [" ]", "}"]
    text = "\n".join(parts) + "\n"
    json.loads(text)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def rounded(value):
    """Rounded to four digits, which is more than enough precision."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value
