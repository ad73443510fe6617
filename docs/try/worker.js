// pipesim in a worker of its own, so that the page stays alive: questions come as messages, and so do the answers.
import { loadPyodide } from "./run/pyodide.mjs";

const code = fetch("run/pipesim.zip").then((file) => file.arrayBuffer());
const loaded = loadPyodide().then(async (python) => {
  python.FS.writeFile("/pipesim.zip", new Uint8Array(await code));
  return python.runPython(`import sys; sys.path.insert(0, "/pipesim.zip"); import answer; answer`);
});

onmessage = ({ data: { number, ask, given } }) => loaded.then((answer) => JSON.parse(answer[ask](...given)))
  .catch((error) => ({ refused: String(error.message ?? error).slice(-2000) }))
  .then((found) => postMessage({ number, found }));
