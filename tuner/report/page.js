'use strict';
// Tooltips for the marks of the charts, by mouse, touch and arrow keys, and a hint at tables that scroll. The
// page is whole without it: each mark has a <title>.
const tip = document.getElementById('tip'), said = document.getElementById('said');
const kNear = 24;   // pixels from the pointer to a mark that it may mean
const kStack = 5;   // marks closer together than this are told one after another, a click each

// A name may break behind each `_`.
function fill(node, text) {
  node.replaceChildren();
  text.split('_').forEach((piece, i, all) => {
    node.append(i + 1 < all.length ? piece + '_' : piece);
    if (i + 1 < all.length) node.append(document.createElement('wbr'));
  });
}

// Beside the mark, inside the window.
function place(box) {
  const wide = document.documentElement.clientWidth, high = innerHeight, w = tip.offsetWidth, h = tip.offsetHeight;
  const x = (box.left + box.right) / 2;
  const below = box.bottom + 12, above = box.top - 12 - h;
  const top = below + h <= high - 8 ? below : above >= 8 ? above : high - 8 - h;
  tip.style.left = Math.max(8, Math.min(x + 12, wide - 8 - w)) + 'px';
  tip.style.top = Math.max(8, top) + 'px';
}

class Chart {
  constructor(svg, marks) {
    this.svg = svg;
    this.marks = marks;
    this.rows = svg.hasAttribute('data-rows');
    // The browser's own tooltip would lie over ours.
    this.texts = marks.map(mark => {
      const title = mark.querySelector('title'), text = title.textContent;
      title.remove();
      mark.setAttribute('role', 'img');
      mark.setAttribute('aria-label', text);
      return text;
    });
    this.at = Math.max(0, marks.findIndex(mark => mark.matches('.winner, .fastest')));
    this.shown = -1;
    this.ring = document.createElementNS(svg.namespaceURI, 'circle');
    this.ring.setAttribute('class', 'ring');
    this.ring.setAttribute('r', 7);
    this.ring.setAttribute('visibility', 'hidden');
    svg.append(this.ring);
    svg.setAttribute('tabindex', 0);
    svg.setAttribute('role', 'application');
    svg.setAttribute('aria-label', `${svg.getAttribute('aria-label')}: ${marks.length} marks. The arrow keys move from mark to mark.`);
    svg.addEventListener('pointermove', e => { if (e.pointerType !== 'touch') this.hover(e); });
    svg.addEventListener('pointerleave', e => { if (e.pointerType !== 'touch' && document.activeElement !== svg) this.hide(); });
    svg.addEventListener('click', e => this.click(e));
    svg.addEventListener('keydown', e => this.key(e));
    svg.addEventListener('focus', () => { if (svg.matches(':focus-visible')) this.show(this.at, true); });
    svg.addEventListener('blur', () => this.hide());
    this.forget = () => { this.places = this.orders = null; };
    new ResizeObserver(() => { this.forget(); this.hide(); }).observe(svg);
    addEventListener('scroll', () => { if (this.shown >= 0) place(this.marks[this.shown].getBoundingClientRect()); }, {passive: true, capture: true});
    document.addEventListener('pointerdown', e => { if (!svg.contains(e.target)) this.hide(); });
  }

  // Middles of the marks, in pixels of the chart.
  middles() {
    if (!this.places) {
      const origin = this.svg.getBoundingClientRect();
      this.places = this.marks.map(mark => {
        const box = mark.getBoundingClientRect();
        return [(box.left + box.right) / 2 - origin.left, (box.top + box.bottom) / 2 - origin.top];
      });
    }
    return this.places;
  }
  // The marks from left to right (axis 0) or from top to bottom (1): the orders that arrow keys follow.
  order(axis) {
    if (this.rows) axis = 1;
    this.orders ??= [];
    this.orders[axis] ??= this.marks.map((_, i) => i).sort((a, b) => this.middles()[a][axis] - this.middles()[b][axis] || a - b);
    return this.orders[axis];
  }
  // The marks at a place: the nearest one first, with those that lie as good as on it.
  near(event) {
    const origin = this.svg.getBoundingClientRect(), x = event.clientX - origin.left, y = event.clientY - origin.top;
    const middles = this.middles();
    const far = middles.map(([mx, my]) => this.rows ? Math.abs(my - y) : Math.hypot(mx - x, my - y));
    let best = 0;
    far.forEach((d, i) => { if (d < far[best]) best = i; });
    if (!(far[best] <= kNear)) return [];
    const [bx, by] = middles[best];
    const others = middles.map((_, i) => i).filter(i => i !== best && !this.rows && Math.hypot(middles[i][0] - bx, middles[i][1] - by) <= kStack);
    return [best, ...others];
  }

  hover(event) {
    const here = this.near(event);
    if (here.length === 0) {
      if (document.activeElement !== this.svg || !this.svg.matches(':focus-visible')) this.hide();
    } else if (!here.includes(this.shown) || !this.clicked) {
      this.clicked = false;
      this.show(here[0], false, here.length);
    }
  }
  click(event) {
    const here = this.near(event);
    if (here.length === 0) return this.hide();
    const stack = here.slice().sort((a, b) => a - b), last = this.clicked ? stack.indexOf(this.shown) : -1;
    this.clicked = true;
    this.svg.focus({preventScroll: true});
    this.show(last < 0 ? here[0] : stack[(last + 1) % stack.length], true, here.length);
  }
  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === 'Escape') return this.hide();
    const last = this.marks.length - 1, page = Math.max(1, Math.round(last / 10));
    const step = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -last, End: last}[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const order = this.order(event.key === 'ArrowDown' || event.key === 'ArrowUp' ? 1 : 0);
    this.show(order[Math.max(0, Math.min(last, order.indexOf(this.at) + step))], true);
  }

  // `aloud`: chosen by a key, a click or a tap, so screen readers say it, and it is brought into sight.
  show(i, aloud, together = 1) {
    const mark = this.marks[i], [x, y] = this.middles()[i];
    this.at = this.shown = i;
    this.ring.setAttribute('cx', x);
    this.ring.setAttribute('cy', y);
    this.ring.setAttribute('visibility', 'visible');
    if (aloud) mark.scrollIntoView({block: 'nearest', inline: 'nearest', behavior: 'instant'});
    const more = together > 1 ? `\n${together - 1} more here: click or tap again, or use the arrow keys` : '';
    fill(tip, this.texts[i] + more);
    tip.hidden = false;
    place(mark.getBoundingClientRect());
    if (aloud) said.textContent = this.texts[i].replaceAll('\n', ', ');
  }
  hide() {
    if (this.shown < 0) return;
    this.shown = -1;
    this.clicked = false;
    this.ring.setAttribute('visibility', 'hidden');
    tip.hidden = true;
  }
}

for (const svg of document.querySelectorAll('svg.chart')) {
  const marks = [...svg.querySelectorAll('.m')];
  if (marks.length > 0) new Chart(svg, marks);
}

// A table that fits is no stop for the tab key, and needs no hint.
const watch = new ResizeObserver(all => all.forEach(({target}) => {
  const overflows = target.scrollWidth > target.clientWidth + 1;
  target.parentNode.classList.toggle('overflows', overflows);
  if (overflows) target.setAttribute('tabindex', 0); else target.removeAttribute('tabindex');
}));
document.querySelectorAll('.scroll').forEach(box => watch.observe(box));
