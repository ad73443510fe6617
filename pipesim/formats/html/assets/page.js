// The page: its parts from top to bottom, and the colours.
const main = document.getElementById('main');
document.title = data.title;
document.getElementById('title').textContent = data.title;

function part(title) {
  const made = inside(element('section'), element('h2', title));
  main.append(made);
  return made;
}

if (data.claim && !data.title.includes(data.claim)) main.append(element('p', data.claim, 'claim'));
const views = {};
if (data.story) views.story = new StoryView(data.story, part('The schedule, step by step'));
if (data.runs.length) views.timeline = new Timeline(data.runs, part('Timeline'));
if (data.report.length) part('Report').append(element('pre', data.report.join('\n')));
window.pipesim = views;

const theme = document.getElementById('theme'), themes = ['automatic', 'light', 'dark'];
theme.addEventListener('click', () => {
  const next = themes[(themes.indexOf(document.documentElement.dataset.theme || 'automatic') + 1) % 3];
  document.documentElement.dataset.theme = next;
  theme.textContent = 'colours: ' + next;
  if (views.timeline) views.timeline.paint();
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => views.timeline && views.timeline.paint());
