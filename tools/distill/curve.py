"""The curve of a training as one SVG file: loss, and the share of drafted tokens that would be accepted."""

from pathlib import Path
from typing import Any

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 380, 60, 50, 60, 50
COLOURS = {"agrees": "#1668a8", "overlap": "#b8541a", "loss": "#888888"}


def write_curve(path: Path, curve: list[dict[str, Any]], title: str) -> None:
    points = [point for point in curve if point["step"] > 0]
    if not points:
        return
    minutes = [point["seconds"] / 60 for point in points]
    first, last = minutes[0], max(minutes[-1], minutes[0] + 1e-6)
    most_loss = max(max(point["loss"] for point in points), 1e-6)

    def x(minute: float) -> float:
        return float(LEFT + (WIDTH - LEFT - RIGHT) * (minute - first) / (last - first))

    def y(share: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share)

    lines = []
    for percent in range(0, 101, 20):
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(percent / 100):.1f}" y2="{y(percent / 100):.1f}" stroke="#ddd"/>'
                     f'<text x="{LEFT - 8}" y="{y(percent / 100) + 4:.1f}" text-anchor="end">{percent} %</text>')
    for part in range(5):
        minute = first + (last - first) * part / 4
        lines.append(f'<text x="{x(minute):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{minute:.1f} min</text>')

    def draw(values: list[float], colour: str, label: str, dash: str, place: int) -> None:
        path_points = " ".join(f"{x(m):.1f},{y(v):.1f}" for m, v in zip(minutes, values, strict=True))
        lines.append(f'<polyline points="{path_points}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>')
        lines.append(f'<text x="{LEFT + 8 + 220 * place}" y="{HEIGHT - 8}" fill="{colour}">{label}</text>')

    for ahead in range(len(points[0]["agrees"])):
        dash = "" if ahead == 0 else f"{8 - min(ahead, 3) * 2},{2 + ahead}"
        for place, (name, label) in enumerate((("agrees", "accepted at T = 0"), ("overlap", "accepted at T = 1"))):
            text = label if ahead == 0 else ""
            draw([point[name][ahead] for point in points], COLOURS[name], text, dash, place)
    draw([point["loss"] / most_loss for point in points], COLOURS["loss"], f"loss (of {most_loss:.2f})", "1,3", 2)
    body = "\n".join(lines)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n<text x="{LEFT}" y="24" font-size="16">{_escaped(title)}</text>\n'
        f"{body}\n</svg>\n", encoding="utf-8")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
