// Elements and numbers. Text of the data is only ever set as text.
const data = JSON.parse(document.getElementById('data').textContent);

function element(kind, text, name) {
  const made = document.createElement(kind);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
}

function inside(parent, ...children) {
  for (const child of children) parent.append(child);
  return parent;
}

function table(head, rows) {
  const made = element('table');
  if (head) made.append(inside(element('tr'), ...head.map((text) => element('th', text))));
  for (const row of rows) {
    made.append(inside(element('tr'), ...row.map((text) => element('td', text))));
  }
  return made;
}

// A time of the data is in picoseconds.
function time(ps) {
  const ns = ps / 1000 || 0;  // never -0
  return ns.toLocaleString('en', { maximumFractionDigits: Math.abs(ns) < 100 ? 1 : 0 }) + ' ns';
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
}
