// A counterexample step by step: the steps, where every agent stands, what every barrier holds, the source lines.
class StoryView {
  constructor(story, place) {
    this.story = story;
    this.at = -1;
    this.all = false;
    this.states = this.unfold();
    this.build(place);
    this.go(story.steps.length);
  }

  // The state after each step: a step lists what it changes.
  unfold() {
    let agents = this.story.start, barriers = this.story.barriers.map(() => null);
    const found = [{ agents, barriers, flights: [], changedAgents: new Set(), changedBarriers: new Set() }];
    for (const step of this.story.steps) {
      agents = agents.slice();
      barriers = barriers.slice();
      for (const [n, ...now] of step.agents) agents[n] = now;
      for (const [n, now] of step.barriers) barriers[n] = now;
      found.push({ agents, barriers, flights: step.flights, changedAgents: new Set(step.agents.map((each) => each[0])), changedBarriers: new Set(step.barriers.map((each) => each[0])) });
    }
    return found;
  }

  // The numbers of the steps that are listed; behind the last one is the end, which changes nothing.
  shown() {
    const steps = this.story.steps.map((step, n) => n), end = this.story.steps.length;
    return [...steps.filter((n) => this.all || this.matters(this.story.steps[n])), end];
  }

  matters(step) {
    return step.part === 'focus' || step.part === 'past';
  }

  // The barriers that the listed steps change after their init, or that an agent waits for at the end.
  used() {
    const found = new Set(), last = this.states[this.states.length - 1], known = new Set();
    for (const n of this.shown()) {
      const step = this.story.steps[n];
      if (!step) continue;
      for (const [barrier] of step.barriers) if (this.all || !step.what.startsWith('init ')) found.add(barrier);
    }
    for (const [standing, next] of last.agents) if (this.story.texts[standing] === 'waits') known.add(this.story.texts[next]);
    this.story.barriers.forEach((name, n) => {
      if ([...known].some((next) => next.includes(' ' + name))) found.add(n);
    });
    return found;
  }

  // The barriers of a group together, its stages in order; the groups as the program has them.
  ordered() {
    const groups = new Map(), split = (name) => [name.slice(0, name.lastIndexOf('[')), Number(name.slice(name.lastIndexOf('[') + 1, -1))];
    this.story.barriers.forEach((name, n) => {
      const [group, stage] = split(name);
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push([stage, n]);
    });
    return [...groups.values()].flatMap((stages) => stages.sort((a, b) => a[0] - b[0]).map(([, n]) => n));
  }

  build(place) {
    const bar = element('div', undefined, 'bar');
    const button = (text, what, action) => {
      const made = element('button', text);
      made.type = 'button';
      made.title = what;
      made.addEventListener('click', action);
      bar.append(made);
      return made;
    };
    button('start', 'before the first step (Home)', () => this.go(-1));
    this.back = button('◀ back', 'the step before (←)', () => this.move(-1));
    this.next = button('next ▶', 'the next step (→)', () => this.move(1));
    button('end', 'where it ends (End)', () => this.move(Infinity));
    const every = element('input');
    every.type = 'checkbox';
    every.addEventListener('change', () => {
      this.all = every.checked;
      this.list();
      this.go(this.at);
    });
    bar.append(inside(element('label'), every, ' all steps, also unrelated ones'));
    this.count = element('span', '', 'quiet');
    bar.append(this.count);
    this.steps = element('ol', undefined, 'steps');
    this.steps.tabIndex = 0;
    this.steps.setAttribute('role', 'listbox');
    this.steps.setAttribute('aria-label', 'steps of the schedule');
    this.state = element('div', undefined, 'state');
    this.state.setAttribute('aria-live', 'polite');
    this.source = element('div', undefined, 'source');
    const view = inside(element('div', undefined, 'story'), this.steps, inside(element('div'), this.state, this.source));
    inside(place, bar, view);
    place.addEventListener('keydown', (event) => {
      const actions = { ArrowRight: 1, ArrowDown: 1, j: 1, ArrowLeft: -1, ArrowUp: -1, k: -1, End: Infinity };
      if (event.target.type === 'checkbox') return;
      if (event.key === 'Home') this.go(-1);
      else if (actions[event.key]) this.move(actions[event.key]);
      else return;
      event.preventDefault();
    });
    this.list();
  }

  list() {
    this.items = new Map();
    this.steps.replaceChildren();
    for (const n of this.shown()) {
      const step = this.story.steps[n];
      const item = element('li', undefined, !step ? 'claim' : step.part === 'focus' ? 'focus' : '');
      item.setAttribute('role', 'option');
      if (!step) inside(item, element('span'), element('span', 'end'), element('span', data.claim));
      else inside(item, element('span', step.number, 'number'), element('span', this.story.agents[step.agent]), element('span', step.what + (step.note ? ' · ' + step.note : '')));
      item.addEventListener('click', () => this.go(n));
      this.items.set(n, item);
      this.steps.append(item);
    }
  }

  move(by) {
    const shown = this.shown();
    if (by === Infinity) return this.go(shown[shown.length - 1]);
    let here = shown.indexOf(this.at);
    if (here < 0 && this.at >= 0) here = shown.filter((n) => n <= this.at).length - (by > 0 ? 1 : 0);
    this.go(here + by < 0 ? -1 : shown[Math.min(shown.length - 1, here + by)]);
  }

  go(n) {
    this.at = n === undefined ? -1 : n;
    for (const [number, item] of this.items) item.setAttribute('aria-selected', number === this.at);
    const item = this.items.get(this.at);
    if (item) {  // the list moves, the page stays
      const top = item.offsetTop - this.steps.offsetTop, bottom = top + item.offsetHeight;
      if (top < this.steps.scrollTop) this.steps.scrollTop = top;
      else if (bottom > this.steps.scrollTop + this.steps.clientHeight) this.steps.scrollTop = bottom - this.steps.clientHeight;
    }
    const shown = this.shown();
    this.count.textContent = (this.at < 0 ? 'before the first' : 'step ' + (shown.indexOf(this.at) + 1) + ' of ' + shown.length) +
      (this.story.leftOut ? ' · ' + this.story.leftOut + ' earlier moves left out' : '');
    this.back.disabled = this.at < 0;
    this.next.disabled = !shown.length || this.at === shown[shown.length - 1];
    this.draw();
  }

  draw() {
    const now = this.states[Math.min(this.at + 1, this.states.length - 1)], texts = this.story.texts, step = this.story.steps[this.at];
    const agents = element('table'), barriers = element('table');
    agents.append(inside(element('tr'), ...['agent', 'now', 'its next operation'].map((text) => element('th', text))));
    now.agents.forEach(([standing, next], n) => {
      const row = element('tr', undefined, step && step.agent === n ? 'changed' : '');
      const stands = element('td', texts[standing], texts[standing] === 'waits' ? 'blocked' : '');
      agents.append(inside(row, element('td', this.story.agents[n]), stands, element('td', texts[next])));
    });
    barriers.append(inside(element('tr'), ...['barrier', 'arrivals', '', 'bytes outstanding', 'in phase'].map((text) => element('th', text))));
    const used = this.used();
    const awaited = now.agents.filter(([standing]) => texts[standing] === 'waits').map(([, next]) => texts[next]);
    this.ordered().forEach((n) => {
      const word = now.barriers[n], name = this.story.barriers[n];
      if (!word || !used.has(n)) return;
      const [expected, pending, tx, done] = word;
      const meter = element('span', undefined, 'meter'), fill = element('i');
      fill.style.width = (expected ? (100 * (expected - pending)) / expected : 0) + '%';
      const row = element('tr', undefined, step && now.changedBarriers.has(n) ? 'changed' : '');
      barriers.append(inside(row, element('td', name, awaited.some((next) => next.includes(' ' + name)) ? 'blocked' : ''), element('td', (expected - pending) + ' of ' + expected), inside(element('td'), inside(meter, fill)), element('td', tx.toLocaleString('en')), element('td', done)));
    });
    const flights = element('p', now.flights.length ? 'in flight: ' + now.flights.map((n) => texts[n]).join(' · ') : 'nothing in flight', 'quiet');
    this.state.replaceChildren(agents, element('br'), barriers, flights);
    this.lines(step);
  }

  lines(step) {
    this.source.replaceChildren();
    if (step) this.excerpt(step.line);
    else if (this.at >= 0) {
      const texts = this.story.texts, last = this.states[this.states.length - 1].agents;
      const waits = last.filter(([standing]) => texts[standing] === 'waits').map((agent) => texts[agent[2]]);
      for (const place of new Set(waits)) this.excerpt(place);
    }
  }

  excerpt(place) {
    if (!place) return;
    this.source.append(element('div', place, 'quiet'));
    const lines = data.sources[place];
    if (!lines) return;
    const number = Number(place.slice(place.lastIndexOf(':') + 1)), code = element('pre');
    const indent = Math.min(...lines.filter(([, text]) => text.trim()).map(([, text]) => text.search(/\S/)));
    for (const [n, text] of lines) {
      code.append(element('span', String(n).padStart(5) + '  ' + text.slice(indent) + '\n', n === number ? 'at' : ''));
    }
    this.source.append(code);
  }
}
