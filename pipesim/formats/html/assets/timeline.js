// The timeline: rows of slices on a canvas. Only what is in view is drawn, at most one slice of a row in a pixel.
const ROW = 20, HEAD = 22, NAMES = 190, AXIS = 24;

class Timeline {
  constructor(runs, place) {
    this.runs = runs;
    this.place = place;
    this.end = Math.max(1, ...runs.map((run) => run.end));
    this.from = 0;
    this.to = this.end;
    this.top = 0;
    this.picked = null;
    this.counters = false;
    this.closed = new Set();
    runs.forEach((run, n) => this.prepare(run, n));
    this.build();
    this.layout();
    this.listen();
  }

  // For each track the numbers of its slices in order of time; for each slice what released it, and what it released.
  prepare(run, n) {
    run.rows = run.tracks.map(() => []);
    run.slices.track.forEach((track, slice) => run.rows[track].push(slice));
    run.intoWait = new Map();
    run.outOf = new Map();
    run.arrows.source.forEach((source, k) => {
      const target = run.arrows.target[k];
      if (!run.intoWait.has(target)) run.intoWait.set(target, []);
      run.intoWait.get(target).push(source);
      if (!run.outOf.has(source)) run.outOf.set(source, []);
      run.outOf.get(source).push(target);
    });
    for (const counter of run.counters) counter.most = counter.value.reduce((a, b) => Math.max(a, b), 1);
    const ctas = [...new Set(run.tracks.map((track) => track.cta))];
    if (ctas.length > 2) ctas.slice(1).forEach((cta) => this.closed.add(n + ':' + cta));
  }

  build() {
    const bar = element('div', undefined, 'bar');
    const button = (text, what, action) => {
      const made = element('button', text);
      made.type = 'button';
      made.title = what;
      made.addEventListener('click', action);
      bar.append(made);
    };
    button('−', 'zoom out (S)', () => this.zoom(2, (this.from + this.to) / 2));
    button('+', 'zoom in (W)', () => this.zoom(0.5, (this.from + this.to) / 2));
    button('◀', 'earlier (A)', () => this.pan(-0.3));
    button('▶', 'later (D)', () => this.pan(0.3));
    button('whole run', 'show everything (0)', () => this.show(0, this.end));
    button('counters', 'phases, bytes pending and slots in use (C)', () => this.toggleCounters());
    bar.append(element('span', 'click or arrow keys: select · W A S D or wheel with Ctrl: zoom and move · Enter: what released it', 'quiet'));
    const legend = element('div', undefined, 'legend');
    data.kinds.forEach((kind) => {
      const swatch = element('i');
      swatch.style.background = 'var(--' + kind.name + ')';
      legend.append(inside(element('span'), swatch, kind.text));
    });
    this.canvas = element('canvas');
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute('role', 'application');
    this.canvas.setAttribute('aria-label', 'timeline; the selected slice is described below it');
    this.detail = element('div', 'Select a slice: a wait says what released it, and how late.', 'detail');
    this.detail.setAttribute('aria-live', 'polite');
    inside(this.place, bar, legend, this.canvas, this.detail);
    for (const run of this.runs) {
      for (const note of run.notes) this.place.append(element('div', run.label + ': ' + note, 'quiet'));
    }
  }

  // The lines of the picture, from top to bottom: heads of runs and CTAs, tracks, counters.
  layout() {
    this.lines = [];
    let y = 0;
    const add = (line, height) => {
      this.lines.push({ ...line, y, height });
      y += height;
    };
    this.runs.forEach((run, n) => {
      add({ head: run.label, run }, HEAD + 4);
      const ctas = [...new Set(run.tracks.map((track) => track.cta))];
      for (const cta of ctas) {
        const key = n + ':' + cta;
        const mine = run.tracks.map((track, k) => [track, k]).filter(([track]) => track.cta === cta);
        add({ head: mine[0][0].place, key, closed: this.closed.has(key), run }, HEAD);
        if (this.closed.has(key)) continue;
        for (const [track, k] of mine) if (run.rows[k].length) add({ track, k, run }, ROW);
        if (this.counters) {
          for (const counter of run.counters) if (counter.cta === cta) add({ counter, run }, ROW + 6);
        }
      }
    });
    this.tall = y;
    this.paint();
  }

  toggleCounters() {
    this.counters = !this.counters;
    this.layout();
  }

  get room() {
    return Math.max(60, this.wide - this.names);
  }

  x(at) {
    return this.names + ((at - this.from) / (this.to - this.from)) * this.room;
  }

  at(x) {
    return this.from + ((x - this.names) / this.room) * (this.to - this.from);
  }

  show(from, to) {
    const width = Math.min(this.end * 1.02, Math.max(2000, to - from));
    this.from = Math.max(-this.end * 0.01, Math.min(from, this.end * 1.02 - width));
    this.to = this.from + width;
    this.paint();
  }

  zoom(factor, about) {
    const width = (this.to - this.from) * factor;
    const part = (about - this.from) / (this.to - this.from);
    this.show(about - part * width, about + (1 - part) * width);
  }

  pan(part) {
    const by = (this.to - this.from) * part;
    this.show(this.from + by, this.to + by);
  }

  scroll(by) {
    this.top = Math.max(0, Math.min(this.top + by, this.tall - (this.high - AXIS)));
    this.paint();
  }

  paint() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  draw() {
    const began = performance.now();
    const scale = window.devicePixelRatio || 1;
    this.wide = this.canvas.clientWidth;
    this.names = Math.min(NAMES, this.wide * 0.34);
    this.high = Math.min(this.tall + AXIS + 4, Math.max(220, window.innerHeight * 0.62));
    this.top = Math.max(0, Math.min(this.top, this.tall - (this.high - AXIS)));
    this.canvas.style.height = this.high + 'px';
    this.canvas.width = Math.round(this.wide * scale);
    this.canvas.height = Math.round(this.high * scale);
    const pen = (this.pen = this.canvas.getContext('2d'));
    pen.scale(scale, scale);
    pen.font = '12px ui-monospace, Menlo, Consolas, monospace';
    pen.textBaseline = 'middle';
    this.colours = Object.fromEntries(
      ['page', 'ink', 'quiet', 'line', 'soft', 'focus', 'bad', ...data.kinds.map((kind) => kind.name)].map((name) => [name, colour(name)]));
    pen.fillStyle = this.colours.page;
    pen.fillRect(0, 0, this.wide, this.high);
    this.axis();
    pen.save();
    pen.beginPath();
    pen.rect(0, AXIS, this.wide, this.high - AXIS);
    pen.clip();
    this.drawn = 0;
    for (const line of this.lines) {
      const y = line.y - this.top + AXIS;
      if (y + line.height < AXIS || y > this.high) continue;
      if (line.head !== undefined) this.head(line, y);
      else if (line.counter) this.counter(line, y);
      else this.track(line, y);
    }
    this.arrows();
    pen.restore();
    this.took = performance.now() - began;
    this.canvas.dataset.drawn = this.drawn;
    this.canvas.dataset.took = this.took.toFixed(2);
  }

  axis() {
    const pen = this.pen;
    const least = ((this.to - this.from) / this.room) * 95;  // so that the words beside two lines do not meet
    let step = 10 ** Math.ceil(Math.log10(least));
    if (step / 5 >= least) step /= 5;
    else if (step / 2 >= least) step /= 2;
    pen.textAlign = 'left';
    for (let at = Math.ceil(this.from / step) * step; at < this.to; at += step) {
      const x = this.x(at);
      if (x < this.names) continue;
      pen.fillStyle = this.colours.line;
      pen.fillRect(Math.round(x), AXIS - 6, 1, this.high);
      pen.fillStyle = this.colours.quiet;
      if (x + 60 < this.wide) pen.fillText(time(Math.round(at)), x + 3, 11);
    }
  }

  head(line, y) {
    const pen = this.pen;
    pen.fillStyle = this.colours.soft;
    pen.fillRect(0, y + 1, this.wide, line.height - 2);
    pen.fillStyle = this.colours.ink;
    pen.textAlign = 'left';
    const mark = line.key === undefined ? '' : line.closed ? '▸ ' : '▾ ';
    pen.fillText(mark + line.head, line.key === undefined ? 6 : 14, y + line.height / 2);
  }

  label(text, y, height) {
    const pen = this.pen;
    pen.fillStyle = this.colours.page;
    pen.fillRect(0, y, this.names - 2, height);
    pen.save();
    pen.beginPath();
    pen.rect(0, y, this.names - 6, height);
    pen.clip();
    pen.fillStyle = this.colours.ink;
    pen.textAlign = 'left';
    pen.fillText(text, 20, y + height / 2);
    pen.restore();
  }

  // The first slice of a track that ends after this time: they do not overlap, so both ends are in order.
  first(run, row, at, low = 0) {
    let high = row.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.last(run, row[middle]) < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  last(run, slice) {
    const end = run.slices.end[slice];
    return end < 0 ? this.end * 1.02 : end;
  }

  track(line, y) {
    const { run, k } = line, row = run.rows[k], pen = this.pen;
    const draw = (slice, chosen) => {
      const left = Math.max(this.names, this.x(run.slices.begin[slice])), right = Math.min(this.wide, this.x(this.last(run, slice)));
      this.slice(run, slice, left, right, y, chosen);
      this.drawn++;
      return Math.ceil(Math.max(left + 1, right));
    };
    for (let n = this.first(run, row, this.from); n < row.length && run.slices.begin[row[n]] <= this.to;) {
      const filled = draw(row[n], false);
      // What ends before the next pixel would not be seen. A long row is searched, not walked through.
      n = this.first(run, row, this.at(filled), n + 1);
    }
    const picked = this.picked;
    if (picked && picked.run === run && run.slices.track[picked.slice] === k) {
      if (this.last(run, picked.slice) >= this.from && run.slices.begin[picked.slice] <= this.to) draw(picked.slice, true);
    }
    this.label(line.track.name, y, ROW);
    pen.fillStyle = this.colours.line;
    pen.fillRect(0, y + ROW - 0.5, this.wide, 0.5);
  }

  slice(run, slice, left, right, y, chosen) {
    const pen = this.pen, kind = data.kinds[run.slices.kind[slice]].name;
    const waits = kind === 'data' || kind === 'room' || kind === 'other';
    const high = waits ? 8 : 14, top = y + (ROW - high) / 2, wide = Math.max(1, right - left);
    pen.fillStyle = this.colours[kind];
    pen.globalAlpha = run.slices.late[slice] ? 0.55 : 1;
    pen.fillRect(left, top, run.slices.begin[slice] === run.slices.end[slice] ? 2 : wide, high);
    pen.globalAlpha = 1;
    if (run.slices.end[slice] < 0) {
      pen.fillStyle = this.colours.bad;
      pen.fillRect(left, top, wide, 2);
    }
    const whole = run.texts[run.slices.name[slice]], letters = Math.floor((wide - 8) / 7.4);
    const text = whole.length <= letters ? whole : letters > 7 ? whole.slice(0, letters - 1) + '…' : '';
    if (!waits && text) {
      pen.fillStyle = run.slices.late[slice] ? this.colours.ink : this.colours.page;
      pen.textAlign = 'left';
      pen.fillText(text, left + 4, y + ROW / 2 + 0.5);
    }
    if (chosen) {
      pen.strokeStyle = this.colours.focus;
      pen.lineWidth = 2;
      pen.strokeRect(left - 1, top - 2, wide + 2, high + 4);
    }
  }

  counter(line, y) {
    const { counter } = line, pen = this.pen, height = ROW + 2;
    const most = counter.phase ? 1 : counter.most;
    let low = 0, high = counter.at.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (counter.at[middle] < this.from) low = middle + 1;
      else high = middle;
    }
    pen.strokeStyle = this.colours.focus;
    pen.lineWidth = 1;
    pen.beginPath();
    // A phase is drawn by its parity, and numbered where there is room.
    const level = (value) => y + height - 2 - Math.max(0, (counter.phase ? value % 2 : value) / most) * (height - 6);
    const numbers = [];
    let value = low ? counter.value[low - 1] : 0, pixel = -1;
    pen.moveTo(this.names, level(value));
    for (let n = low; n < counter.at.length && counter.at[n] <= this.to; n++) {
      const x = this.x(counter.at[n]);
      if (Math.floor(x) === pixel) {
        value = counter.value[n];
        continue;
      }
      pixel = Math.floor(x);
      pen.lineTo(x, level(value));
      value = counter.value[n];
      pen.lineTo(x, level(value));
      if (!numbers.length || x - numbers[numbers.length - 1][0] > 40) numbers.push([x, value]);
    }
    pen.lineTo(this.wide, level(value));
    pen.stroke();
    pen.fillStyle = this.colours.quiet;
    pen.textAlign = 'left';
    for (const [x, said] of numbers) pen.fillText(said.toLocaleString('en'), x + 3, y + height / 2);
    this.label(counter.name, y, height);
  }

  lineOf(run, slice) {
    return this.lines.find((line) => line.run === run && line.k === run.slices.track[slice]);
  }

  // When an arrive was issued, or a transfer had landed.
  effect(run, slice) {
    return run.tracks[run.slices.track[slice]].flight ? this.last(run, slice) : run.slices.begin[slice];
  }

  arrows() {
    if (!this.picked) return;
    const { run, slice } = this.picked, pen = this.pen;
    const pairs = [...(run.intoWait.get(slice) || []).map((source) => [source, slice]), ...(run.outOf.get(slice) || []).map((target) => [slice, target])];
    pen.strokeStyle = pen.fillStyle = this.colours.focus;
    pen.lineWidth = 1.4;
    for (const [source, target] of pairs) {
      const one = this.lineOf(run, source), two = this.lineOf(run, target);
      if (!one || !two) continue;
      const x1 = this.x(this.effect(run, source)), y1 = one.y - this.top + AXIS + ROW / 2;
      const x2 = this.x(this.last(run, target)), y2 = two.y - this.top + AXIS + ROW / 2;
      pen.beginPath();
      pen.moveTo(x1, y1);
      pen.bezierCurveTo(x1 + 24, y1, x2 - 24, y2, x2, y2);
      pen.stroke();
      pen.beginPath();
      pen.moveTo(x2, y2);
      pen.lineTo(x2 - 7, y2 - 4);
      pen.lineTo(x2 - 7, y2 + 4);
      pen.fill();
    }
  }

  // What is at a point of the canvas: a head, or the slice of a track that is nearest.
  under(x, y) {
    const line = this.lines.find((each) => y >= each.y - this.top + AXIS && y < each.y + each.height - this.top + AXIS);
    if (!line || line.k === undefined) return { line };
    const { run } = line, row = run.rows[line.k], at = this.at(x), slack = this.at(x + 4) - at;
    let best = null, off = slack;
    for (let n = Math.max(0, this.first(run, row, at - slack)); n < row.length; n++) {
      const begin = run.slices.begin[row[n]];
      if (begin > at + slack) break;
      const far = Math.max(0, begin - at, at - this.last(run, row[n]));
      if (far < off || (far === off && begin === run.slices.end[row[n]])) {
        best = row[n];
        off = far;
      }
    }
    return { line, slice: best };
  }

  pick(run, slice, show) {
    this.picked = { run, slice };
    if (show) {
      const begin = run.slices.begin[slice], end = this.last(run, slice), width = this.to - this.from;
      if (begin < this.from || end > this.to) this.show(begin - width / 4, begin + (width * 3) / 4);
      const line = this.lineOf(run, slice);
      if (line && (line.y < this.top || line.y + ROW > this.top + this.high - AXIS)) this.scroll(line.y - this.top - 60);
    }
    this.describe();
    this.paint();
  }

  describe() {
    const { run, slice } = this.picked, all = run.slices, from = all.begin[slice], end = all.end[slice];
    const track = run.tracks[all.track[slice]];
    const made = element('div');
    made.append(element('strong', run.texts[all.name[slice]]), element('span', ' · ' + track.place + ', ' + track.name + ' · ' + run.label, 'quiet'));
    const said = ['from ' + time(from)];
    if (end < 0) said.push('it never returned');
    else if (end > from) said.push('to ' + (all.late[slice] ? 'at the latest ' : '') + time(end) + ' (' + time(end - from) + ')');
    if (all.error[slice]) said.push('each ± ' + time(all.error[slice]));
    if (all.phase[slice] >= 0) said.push('phase ' + all.phase[slice]);
    if (all.phase[slice] === -1) said.push('a fresh barrier lets it pass');
    if (all.iteration[slice] >= 0) said.push('iteration ' + all.iteration[slice]);
    if (all.value[slice] > 0) said.push('value ' + all.value[slice].toLocaleString('en'));
    made.append(element('div', said.join(' · ')));
    const sources = (run.intoWait.get(slice) || []).map((source) => [this.effect(run, source), source]).sort((a, b) => b[0] - a[0]);
    if (sources.length) {
      const back = this.last(run, slice), last = sources[0][0];
      const early = 'the last of ' + sources.length + ' had come ' + time(from - last) + ' before it began: it did not have to wait, and took ' + time(back - from);
      const late = 'it waited ' + time(Math.min(back, last) - from) + ' for the last of ' + sources.length + ', and returned ' + time(back - last) + ' after it';
      made.append(element('div', last < from ? early : late));
      made.append(this.others('released by', run, sources.map(([at, source], n) => [source, time(at), n ? '' : 'last', time(back - at)]), ['', 'at', '', 'before the return']));
    }
    const targets = run.outOf.get(slice) || [];
    if (targets.length) {
      const at = this.effect(run, slice);
      made.append(this.others('it released', run, targets.map((target) => [target, time(this.last(run, target)), '', time(this.last(run, target) - at)]), ['', 'returned', '', 'later']));
    }
    this.detail.replaceChildren(made);
  }

  others(title, run, rows, head) {
    const made = element('table');
    made.append(inside(element('tr'), element('th', title), ...head.slice(1).map((text) => element('th', text))));
    for (const [slice, ...cells] of rows.slice(0, 40)) {
      const button = element('button', run.texts[run.slices.name[slice]] + ' · ' + run.tracks[run.slices.track[slice]].name);
      button.type = 'button';
      button.addEventListener('click', () => this.pick(run, slice, true));
      made.append(inside(element('tr'), inside(element('td'), button), ...cells.map((text) => element('td', text))));
    }
    if (rows.length > 40) made.append(inside(element('tr'), element('td', 'and ' + (rows.length - 40) + ' more')));
    return made;
  }

  // Left and right: the slice before and after; up and down: the track above and below.
  step(key) {
    const tracks = this.lines.filter((line) => line.k !== undefined);
    if (!tracks.length) return;
    if (!this.picked) return this.pick(tracks[0].run, tracks[0].run.rows[tracks[0].k][0], true);
    const { run, slice } = this.picked, here = tracks.findIndex((line) => line.run === run && line.k === run.slices.track[slice]);
    if (here < 0) return this.pick(tracks[0].run, tracks[0].run.rows[tracks[0].k][0], true);
    if (key === 'ArrowUp' || key === 'ArrowDown') {
      const line = tracks[Math.max(0, Math.min(tracks.length - 1, here + (key === 'ArrowUp' ? -1 : 1)))];
      const row = line.run.rows[line.k];
      return this.pick(line.run, row[Math.min(row.length - 1, this.first(line.run, row, run.slices.begin[slice]))], true);
    }
    const row = run.rows[run.slices.track[slice]], n = row.indexOf(slice) + (key === 'ArrowLeft' ? -1 : 1);
    if (n >= 0 && n < row.length) this.pick(run, row[n], true);
  }

  // From a wait to what released it last.
  follow() {
    if (!this.picked) return;
    const { run, slice } = this.picked, sources = run.intoWait.get(slice) || [];
    if (sources.length) this.pick(run, sources.reduce((a, b) => (this.effect(run, b) > this.effect(run, a) ? b : a)), true);
  }

  listen() {
    const canvas = this.canvas;
    let held = null;
    canvas.addEventListener('pointerdown', (event) => {
      held = { x: event.offsetX, y: event.offsetY, from: this.from, to: this.to, top: this.top, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', (event) => {
      if (!held) return;
      const dx = event.offsetX - held.x, dy = event.offsetY - held.y;
      held.moved = held.moved || Math.abs(dx) + Math.abs(dy) > 4;
      if (!held.moved) return;
      const by = (dx / this.room) * (held.to - held.from);
      this.show(held.from - by, held.to - by);
      this.top = held.top - dy;
    });
    canvas.addEventListener('pointerup', (event) => {
      if (held && !held.moved) this.click(event.offsetX, event.offsetY);
      held = null;
    });
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      if (event.ctrlKey || event.metaKey) this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.at(event.offsetX));
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan((event.deltaX + event.deltaY) / 1500);
      else this.scroll(event.deltaY);
    }, { passive: false });
    canvas.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const middle = this.picked ? this.picked.run.slices.begin[this.picked.slice] : (this.from + this.to) / 2;
      const about = middle > this.from && middle < this.to ? middle : (this.from + this.to) / 2;
      const actions = {
        w: () => this.zoom(0.5, about), s: () => this.zoom(2, about), a: () => this.pan(-0.2), d: () => this.pan(0.2),
        0: () => this.show(0, this.end), c: () => this.toggleCounters(), Enter: () => this.follow(),
        PageDown: () => this.scroll(200), PageUp: () => this.scroll(-200),
        ArrowLeft: () => this.step('ArrowLeft'), ArrowRight: () => this.step('ArrowRight'),
        ArrowUp: () => this.step('ArrowUp'), ArrowDown: () => this.step('ArrowDown'),
      };
      const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (action) {
        event.preventDefault();
        action();
      }
    });
    window.addEventListener('resize', () => this.paint());
  }

  click(x, y) {
    const { line, slice } = this.under(x, y);
    if (line && line.key !== undefined) {
      if (!this.closed.delete(line.key)) this.closed.add(line.key);
      this.layout();
    } else if (slice !== undefined && slice !== null) this.pick(line.run, slice, false);
  }
}
