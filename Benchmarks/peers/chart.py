"""The ratios as an SVG: a bar to the left of 1 is less than the peer's value, to the right more. Plain strings, no library.

The colours are mid-tones with contrast on white and on black, so the page's background can be used.
"""

import math

import workloads
from report import MEASURES, NAMES, in_order, workload_of

WIDTH, LEFT, RIGHT, ROW = 900, 310, 175, 22
INK, GOOD, BAD = "#7a7f87", "#2f9e63", "#d1682f"
DECADES = 4  # The scale is logarithmic, from 1/16 to 16.


def place(ratio):
    """The horizontal position of a ratio."""
    exponent = max(-DECADES, min(DECADES, math.log2(ratio)))
    return LEFT + (WIDTH - LEFT - RIGHT) * (exponent + DECADES) / (2 * DECADES)


def text(x, y, content, anchor="start", weight=400):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">{content}</text>'


def bar(y, workload, peer, measure, ratio):
    target = next((each for each in workload.targets if (each.measure, each.peer) == (measure, peer)), None)
    is_good = target.is_met(ratio) if target else (ratio >= 1 if measure == "rate" else ratio <= 1)
    start, end = sorted((place(1), place(ratio)))
    middle = y + ROW * 0.68
    parts = [
        text(LEFT - 12, middle, f"{workload.title} ÷ {NAMES[peer]}", "end"),
        f'<rect x="{start:.1f}" y="{y + 4}" width="{max(end - start, 1):.1f}" height="{ROW - 8}" rx="2" '
        f'fill="{GOOD if is_good else BAD}"/>',
    ]
    label = f"{ratio:.2f}"
    if target:
        x = place(target.limit)
        parts.append(f'<path d="M{x:.1f} {y + 1}v{ROW - 2}" stroke="{INK}" stroke-width="2.5"/>')
        label += f" (target {target})"
    parts.append(text(WIDTH - RIGHT + 16, middle, label, weight=600))
    return parts


def axis(top, bottom):
    parts = []
    for exponent in range(-DECADES, DECADES + 1):
        x = place(2.0**exponent)
        parts.append(f'<path d="M{x:.1f} {top}V{bottom}" stroke="{INK}" stroke-opacity="{1 if exponent == 0 else 0.25}"/>')
        parts.append(text(x, bottom + 16, f"1/{2**-exponent}" if exponent < 0 else f"{2**exponent}", "middle"))
    return parts


def svg(found):
    """The chart of the rows that the table has (`report.kept_rows`)."""
    parts, y = [], 12
    peers = {shown: name for name, shown in NAMES.items()}
    for measure, name in MEASURES.items():
        rows = [row for row in in_order(found) if row[1] == name and workload_of(row[0]) in workloads.ALL]
        if not rows:
            continue
        better = "more" if measure == "rate" else "less"
        parts.append(text(8, y + 14, f"{name}, Rockpool ÷ peer: {better} is better", weight=600))
        top = y = y + 24
        y += ROW * len(rows)
        parts += axis(top, y)
        for number, row in enumerate(rows):
            workload = workloads.ALL[workload_of(row[0])]
            parts += bar(top + ROW * number, workload, peers[row[2]], measure, float(row[5]))
        y += 36
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}" role="img" '
        f'aria-label="Rockpool over its peers" font-family="system-ui, sans-serif" font-size="13" fill="{INK}">\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )
