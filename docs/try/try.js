// The page "Try it": what is pasted or dropped goes to a worker on this page, and to nowhere else.
const part = (id) => document.getElementById(`try-${id}`);
const [ptx, launch, examples, check, cancel, state] = ["ptx", "launch", "examples", "check", "cancel", "state"].map(part);
const open = new Map();
let worker, number = 0, kernels = [], sources = {}, whole;

function start() {
  worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  worker.onmessage = ({ data }) => open.get(data.number)(data.found);
  worker.onerror = () => say("", "This copy of the site has no interpreter: python -m tools.try_it SITE builds it.");
}

const ask = (what, ...given) => new Promise((done) => {
  open.set(++number, done);
  worker.postMessage({ number, ask: what, given });
});

function say(verdict, words = verdict, working = false) {
  state.dataset.verdict = verdict;
  state.textContent = words;
  check.disabled = working;
  cancel.disabled = !working;
}

function show({ report = "", pictures = [], steps = "" }) {
  part("report").textContent = report;
  part("pictures").replaceChildren(...pictures.map(([alt, svg]) =>
    Object.assign(new Image(), { alt, src: URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" })) })));
  part("steps").hidden = !steps;
  part("steps").srcdoc = steps;
}

async function judge() {
  show({});
  say("", "Checking every schedule …", true);
  const { verdict, refused } = await ask("verdict", ptx.value, launch.value, JSON.stringify(sources));
  if (refused) return say("refused", refused);
  say(verdict, `${verdict}; the report follows …`, true);
  whole = ask("details").then((found) => { show(found); say(verdict, found.refused ?? verdict); });
  return verdict;
}

function choose(at) {
  examples.value = at;
  [ptx.value, launch.value, sources] = [kernels[at].ptx, kernels[at].launch, kernels[at].sources];
  return judge();
}

async function take(files) {
  for (const file of files) (/json$/.test(file.name) ? launch : ptx).value = await file.text();
  sources = {};
}

check.onclick = judge;
examples.onchange = () => examples.value && choose(examples.value);
cancel.onclick = () => { worker.terminate(); start(); say("", "Cancelled. The next check loads Python again."); };
part("files").onchange = ({ target }) => take(target.files);
for (const box of [ptx, launch]) {
  box.ondragover = (event) => event.preventDefault();
  box.ondrop = (event) => { event.preventDefault(); take(event.dataTransfer.files); };
  box.oninput = () => { sources = {}; };
}
start();
kernels = await (await fetch(new URL("run/examples.json", import.meta.url))).json();
examples.append(...kernels.map((kernel, at) => new Option(kernel.said, at)));
window.tryIt = { choose, whole: () => whole, asked: () => performance.getEntriesByType("resource").map(({ name }) => name) };
