/**
 * An operation over time. A thin line is the waiting for a worker, a thick bar the device, a diamond the observation.
 */

import { html } from './dom.js';
import { words } from './parts.js';
import { sign } from './shapes.js';
import { clock, now, span } from './time.js';
import { timing } from './words.js';

/** @typedef {{ from: number, to: number }} Window */

/** @param {string} at */
const hour = at => clock(at).slice(11);

/** @param {Api.Operation} operation */
export function drawOperation(operation) {
	const { kind, stages, proofs, created_at } = operation;
	if (stages.length === 0) return html`<p class="empty">No task has begun.</p>`;
	const { from, to } = timing(operation, now());
	const window = { from, to: Math.max(to, from + 1000) };
	const rows = stages.flatMap((stage, i) => [
		stageRow(stage, i, window),
		...stage.tasks.flatMap((task, j) => taskRows(task, `${i}.${j}`, window, proofs)),
	]);
	return html`<div class="timeline" role="table" aria-label="Attempts of the ${kind}">
    <div class="head" role="row">
      <span role="columnheader">Task</span><span role="columnheader">Attempt</span>
      <span class="scale" role="columnheader">${hour(created_at)}<i>${span(window.to - from)}</i></span>
      <span role="columnheader">Outcome, and what was read</span>
    </div>
    ${rows}
  </div>`;
}

const PARTS = /** @type {const} */ ([
	['devices', 'devices'],
	['waits', 'waiting for a worker'],
	['rest', 'delays and settling'],
]);

/** @param {Api.Operation} operation */
export function drawTiming(operation) {
	const took = timing(operation, now());
	const whole = span(took.whole);
	const parts = PARTS.map(
		([part, name]) => html`<span class=${part}><i></i>${name} ${span(took[part])}</span>`,
	);
	return html`<p class="timing"><b>${operation.finished_at ? `Took ${whole}` : `${whole} so far`}</b>${parts}</p>`;
}

/** @param {string} key @param {string} tone @param {Child} task @param {Child} attempt @param {Child} marks @param {Child} outcome */
const row = (key, tone, task, attempt, marks, outcome) =>
	html`<div role="row" class=${tone} data-key=${key}>
    <span role="cell">${task}</span><span role="cell">${attempt}</span>
    <span role="cell"><svg class="lane" aria-hidden="true"><rect fill="var(--edge)" y="11" width="100%" height="1" />${marks}</svg></span>
    <span role="cell">${outcome}</span>
  </div>`;

/** @param {Api.Stage} stage @param {number} at @param {Window} window */
function stageRow({ started_at, delay_s }, at, window) {
	const told = started_at ? `began ${hour(started_at)}` : 'not begun';
	const marks = started_at && line(started_at, window, 'quiet');
	return row(
		`stage ${at}`,
		'stage',
		html`<b>Stage ${at + 1}</b>`,
		delay_s > 0 && `after ${delay_s} s`,
		marks,
		told,
	);
}

/** @param {Api.Task} task @param {string} key @param {Window} window @param {Api.Proof[]} proofs */
function taskRows({ kind, workload, attempts, levels, status, detail }, key, window, proofs) {
	const title = html`<span><b>${kind}</b> ${workload}</span>`;
	const proven = proofs
		.filter(proof => proof.kind === kind)
		.map(proof => line(proof.observed_at, window, 'fenced'));
	if (attempts.length === 0)
		return [row(key, '', title, levels.flat().join(', '), proven, [sign(status), words(detail)])];
	return attempts.map((attempt, i) => {
		const { method, driver, worker, number } = attempt;
		const by = html`<span>${method} <small>${driver}${worker && ` on ${worker}`}</small></span>`;
		return row(
			`${key} ${number}`,
			'',
			i === 0 && title,
			by,
			[proven, bars(attempt, window)],
			outcome(attempt),
		);
	});
}

/** @param {Api.Attempt} attempt */
function outcome({ outcome, status, observation: seen, detail, claimed_at, ended_at }) {
	const took = claimed_at && ended_at && span(Date.parse(ended_at) - Date.parse(claimed_at));
	const read = seen && ` read ${seen.state}${seen.proves === false ? ' (no proof)' : ''}`;
	const more = detail !== seen?.detail && words(detail);
	return [sign(outcome ?? status), read, took && html`<small> ${took}</small>`, words(seen?.detail), more];
}

/** @param {number} at @param {Window} window */
const percent = (at, { from, to }) => Math.min(100, Math.max(0, ((at - from) / (to - from)) * 100));

/** @type {Record<string, string>} */
const TONES = { confirmed: 'good', refused: 'bad', unknown: 'held' };

/** @param {Api.Attempt} attempt @param {Window} window */
function bars({ started_at, claimed_at, ended_at, outcome, observation }, window) {
	const ended = ended_at ? Date.parse(ended_at) : window.to;
	const claimed = claimed_at ? Date.parse(claimed_at) : ended;
	const tone = outcome ? (TONES[outcome] ?? 'quiet') : ended_at ? 'quiet' : 'work';
	// An observation is dated by the worker's clock.
	const seen = observation && percent(Date.parse(observation.observed_at), window);
	return [
		bar('quiet', Date.parse(started_at), claimed, 10, 3, window),
		claimed_at && bar(tone, claimed, ended, 5, 13, window),
		seen &&
			html`<svg x="${seen}%" y="6" overflow="visible"><path fill="var(--text)" stroke="var(--surface)" d="M0 0 5 5.5 0 11-5 5.5z" /></svg>`,
	];
}

/** @param {string} tone @param {number} from @param {number} to @param {number} y @param {number} height @param {Window} window */
function bar(tone, from, to, y, height, window) {
	const [a, b] = [percent(from, window), percent(to, window)];
	return drawn(
		html`<svg><rect fill="var(--${tone})" x="${a}%" y=${y} width="${Math.max(b - a, 0.4)}%" height=${height} /></svg>`,
	);
}

/** @param {string} at @param {Window} window @param {string} tone */
const line = (at, window, tone) =>
	drawn(
		html`<svg><rect fill="var(--${tone})" x="${percent(Date.parse(at), window)}%" width="2" height="23" /></svg>`,
	);

/** What is in a drawing, so that it can be put into another. @param {Element} drawing */
const drawn = drawing => drawing.firstElementChild;
