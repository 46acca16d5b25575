"""Style sheet and script of the page. Without the script, charts have no tables of values under the pointer."""

from __future__ import annotations

# The colours of curves: dark enough for lines on white, and different from each other in lightness too.
PALETTE = ("#1f5fae", "#d2660a", "#158055", "#b8304a", "#7346b0", "#0d8b99", "#8a5a22", "#c04c97", "#5d6675", "#7d8a12")
# The dashes of curves at the first, second and third use of a colour.
DASHES = ("", "7 3", "2 3")

STYLE = """
:root { --ink: #1c2230; --soft: #5b6475; --rule: #d9dee7; --pale: #f5f7fa; --accent: #1f5fae; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1320px; padding: 1.2rem clamp(.8rem, 3vw, 2.4rem) 4rem; color: var(--ink);
  background: #fff; font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Noto Sans", "Noto Sans CJK SC", sans-serif; }
h1 { font-size: 1.65rem; margin: .4rem 0 0; line-height: 1.2; }
h2 { font-size: 1.3rem; margin: 2.4rem 0 .4rem; padding-top: .9rem; border-top: 2px solid var(--ink); }
h3 { font-size: 1.05rem; margin: 1.8rem 0 .4rem; }
h4 { font-size: .95rem; margin: 1.2rem 0 .2rem; }
p { margin: .4rem 0; max-width: 80ch; overflow-wrap: anywhere; }
a { color: var(--accent); }
nav { display: flex; flex-wrap: wrap; gap: .1rem 1.1rem; margin: .7rem 0 0; }
code, pre { font: .92em/1.4 ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.soft { color: var(--soft); }
.notes { border-left: 4px solid #d2960a; background: #fdf8ea; padding: .5rem .9rem; margin: .8rem 0; }
.notes p { margin: .15rem 0; }
.scroll { overflow-x: auto; margin: .5rem 0 .9rem; max-width: 100%; }
table { border-collapse: separate; border-spacing: 0;
  font-size: .9rem; font-variant-numeric: tabular-nums lining-nums; }
caption { text-align: left; font-weight: 600; padding: .2rem 0 .3rem; }
th, td { padding: .3rem .75rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--rule);
  max-width: 34rem; overflow-wrap: break-word; }
thead th { border-bottom: 2px solid var(--soft); font-weight: 600; vertical-align: bottom; }
tbody th { font-weight: 500; position: sticky; left: 0; background: #fff; max-width: 17rem; }
thead th:first-child { position: sticky; left: 0; background: #fff; }
tbody + tbody th, tbody + tbody td { background: var(--pale); }
tbody + tbody tr:first-child > * { border-top: 2px solid var(--rule); }
td.n, th.n { text-align: right; white-space: nowrap; }
td small { display: block; color: var(--soft); font-size: .82em; }
td.long { min-width: 20rem; } td.path { min-width: 11rem; } tbody th { min-width: 9rem; }
.heading { font-weight: 700 !important; background: var(--pale) !important; }
.right { font-weight: 700; color: #0c6b43; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 390px), 1fr)); gap: 1rem 1.4rem; }
figure { margin: 0; min-width: 0; }
figcaption { font-weight: 600; font-size: .92rem; }
svg { display: block; width: 100%; height: auto; }
svg text { font-size: 11px; fill: var(--ink); font-variant-numeric: tabular-nums; }
.end { text-anchor: end; } .middle { text-anchor: middle; } svg text.soft { fill: var(--soft); }
.halo { paint-order: stroke; stroke: #fff; stroke-width: 3px; stroke-linejoin: round; }
.grid { stroke: #e7eaf0; fill: none; } .axis { stroke: #8a93a3; fill: none; }
.reference { stroke: #8a93a3; stroke-dasharray: 1.5 3; stroke-width: 1.3; fill: none; }
.line { fill: none; stroke: currentColor; stroke-width: 1.7; stroke-linejoin: round; }
.second .line { stroke-dasharray: 4 3; }
circle { fill: currentColor; } circle.best { fill: #fff; stroke: currentColor; stroke-width: 2.4; }
.shade { fill: var(--accent); } .box { fill: none; stroke: #d2660a; stroke-width: 2; }
.cursor { stroke: #8a93a3; stroke-width: 1; }
.legend { display: flex; flex-wrap: wrap; gap: .15rem 1.1rem; max-width: none; margin: .5rem 0; }
.legend label { display: inline-flex; align-items: center; gap: .35rem; cursor: pointer; }
.legend i { width: 1.5rem; border-top: 3px solid currentColor; }
#tip { position: fixed; z-index: 9; pointer-events: none; background: #fff; border: 1px solid #8a93a3; font-size: .8rem;
  border-radius: 4px; padding: .3rem .5rem; box-shadow: 0 2px 8px #0003; font-variant-numeric: tabular-nums; }
#tip div { display: flex; justify-content: space-between; gap: 1rem; }
details { margin: .5rem 0; } summary { cursor: pointer; color: var(--accent); }
.masks { display: flex; flex-wrap: wrap; gap: 0 2.5rem; } .masks > * { flex: 0 1 auto; min-width: 0; }
.guess { display: inline-flex; gap: .5rem; justify-content: space-between; min-width: 6.2rem; white-space: nowrap; }
.guesses { display: flex; gap: 1rem; } .short { white-space: nowrap; }
.text { font-size: 1.02rem; margin-top: 1rem; }
.mask { background: #e3edf9; border-radius: 3px; padding: 0 .3em; font-weight: 600; white-space: nowrap; }
@media (max-width: 640px) { body { font-size: 14px; }
  th, td { padding: .28rem .5rem; } tbody th { min-width: 7.5rem; max-width: 9rem; } }
@media print { details > * { display: block; } .scroll { overflow: visible; } }
"""

SCRIPT = """
const tip = document.createElement('div'); tip.id = 'tip'; tip.hidden = true; document.body.append(tip);
const show = value => value.toLocaleString('en', {maximumSignificantDigits: 6});
for (const svg of document.querySelectorAll('svg.chart')) {
  svg.querySelectorAll('circle title').forEach(title => title.remove());
  const cursor = document.createElementNS(svg.namespaceURI, 'line');
  cursor.setAttribute('class', 'cursor'); svg.append(cursor);
  const lines = [...svg.querySelectorAll('path.line')].map(path => ({path,
    across: path.getAttribute('d').slice(1).split('L').map(parseFloat),
    points: path.dataset.p.split(' ').map(point => point.split(':').map(Number))}));
  svg.addEventListener('pointermove', event => {
    const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
    const near = lines.filter(line => getComputedStyle(line.path.parentNode).display != 'none').map(line => {
      const far = i => Math.abs(line.across[i] - x);
      const i = line.across.reduce((best, _, i) => far(i) < far(best) ? i : best, 0);
      return {line, at: line.across[i], step: line.points[i][0], value: line.points[i][1]}; });
    if (!near.length) return;
    const at = near.reduce((best, each) => Math.abs(each.at - x) < Math.abs(best.at - x) ? each : best).at;
    for (const name of ['x1', 'x2']) cursor.setAttribute(name, at);
    cursor.setAttribute('y1', 12); cursor.setAttribute('y2', svg.viewBox.baseVal.height - 34);
    tip.replaceChildren(...near.sort((a, b) => b.value - a.value).map(each => {
      const row = document.createElement('div'), name = document.createElement('span');
      name.textContent = each.line.path.dataset.l; name.style.color = getComputedStyle(each.line.path).color;
      row.append(name, show(each.value) + ' at ' + show(each.step)); return row; }));
    tip.hidden = false;
    const right = event.clientX + 14, fits = right + tip.offsetWidth < innerWidth;
    tip.style.left = Math.max(4, fits ? right : event.clientX - 14 - tip.offsetWidth) + 'px';
    tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 4) + 'px';
  });
  svg.addEventListener('pointerleave', () => {
    tip.hidden = true;
    cursor.removeAttribute('y1'); cursor.removeAttribute('y2');
  });
}
"""


def colours(count: int) -> str:
    """Return the rules for the classes c0, c1, ... of curves, and those that hide a curve if its box is not ticked."""
    rules = []
    for number in range(count):
        dash = DASHES[number // len(PALETTE) % len(DASHES)]
        rules.append(f".c{number} {{ color: {PALETTE[number % len(PALETTE)]}; }}")
        if dash:
            rules.append(f".c{number} .line {{ stroke-dasharray: {dash}; }}")
        rules.append(f"body:has(#t{number}:not(:checked)) svg .c{number} {{ display: none; }}")
    return "\n".join(rules)
