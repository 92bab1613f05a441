/** One host: its states, gates, proofs, operations, plan and history. */

import { hostActions } from '../act.js';
import { read, readIfAny } from '../api.js';
import { html, morph } from '../dom.js';
import {
	buttons,
	doing,
	ends,
	line,
	lines,
	link,
	linkTo,
	listed,
	loading,
	panel,
	proofLine,
	words,
} from '../parts.js';
import { drawFence } from '../plan.js';
import { operationPath } from '../router.js';
import { may } from '../session.js';
import { sign } from '../shapes.js';
import { site } from '../site.js';
import { span, time } from '../time.js';
import { drawOperation, drawTiming } from '../timeline.js';
import { fields } from '../value.js';
import { spaced, View } from '../view.js';
import { told } from '../words.js';

const AGAIN_MS = 1000;
const RUNNING_MS = 2000;
const IDLE_MS = 15_000;
const OPERATIONS = 10;
const EVENTS = 20;
const LINES = 10;

class HostView extends View {
	name = '';
	/** @type {Api.Host | null} */
	#host = null;
	#again = spaced(AGAIN_MS, () => this.attempt(() => this.#read()));

	start() {
		morph(this, html`<header class="head"><h1 tabindex="-1">${this.name}</h1></header>`, loading());
		this.#again();
		this.on(site, 'event', ({ detail }) => detail.host === this.name && this.#again());
		this.on(site, 'fresh', this.#again);
		this.every(RUNNING_MS, () => this.#host?.operation && this.#again());
		this.every(IDLE_MS, this.#again);
	}

	async #read() {
		const { signal } = this.gone;
		const name = encodeURIComponent(this.name);
		const [explanation, { operations }, { events }, audit] = await Promise.all([
			read(`/hosts/${name}/explanation`, signal),
			read(`/operations?host=${name}&limit=${OPERATIONS}`, signal),
			read(`/events?host=${name}&sort=sequence:desc&limit=${EVENTS}`, signal),
			may('admin') ? readIfAny(`/audit?host=${name}&limit=${LINES}`, signal) : null,
		]);
		this.#host = explanation.host;
		this.#draw(explanation, operations, events, audit?.audit);
	}

	/** @param {Api.Explanation} explanation @param {Api.Operation[]} past @param {Api.Event[]} events @param {Api.Audit[] | undefined} audit */
	#draw(explanation, past, events, audit) {
		const { host } = explanation;
		const holds = host.fencing_state === 'FENCED' && !host.proof_ended;
		const query = `host=${encodeURIComponent(host.name)}`;
		morph(
			this,
			head(host),
			html`<div class="now">${situation(explanation)}</div>`,
			buttons(hostActions(host, this.#again)),
			html`<div class="grid">${[gates(explanation), sources(host), proofs(host), about(host)]}</div>`,
			panel(
				'Operations',
				past.length === 0 && html`<p class="empty">It has had no operation.</p>`,
				past.map(timeline),
				past.length === OPERATIONS && link(`/dashboard/operations?${query}`, 'All operations'),
			),
			panel(holds ? 'Its plan' : 'What a fence would do now', drawFence(explanation), automatic(explanation)),
			html`<div class="grid">${[history(events, query), audit && record(audit, query)]}</div>`,
		);
	}
}
customElements.define('rf-host', HostView);

/** @param {Api.Host} host */
function head({ name, failure_state, fencing_state, generation, segment, operation }) {
	return html`<header class="head">
    <h1 tabindex="-1">${name}</h1>
    <p class="states">${sign(failure_state)}${sign(fencing_state)}<span>generation ${generation}</span>
      <span>segment ${linkTo('segments', segment)}</span>${doing(operation)}</p>
  </header>`;
}

/** @param {Child} what @param {...Child} more */
const warning = (what, ...more) => html`<p class="warn"><b>${what}</b> ${more}</p>`;

/** @param {Api.Explanation} explanation */
function situation({ host, waits_for, seen, left_at }) {
	const { operation, proof_ended, suspension, quarantined_at, alarms = [], kdump, failure_since } = host;
	return [
		waits_for && html`<p><b>Its ${operation?.kind}:</b> ${waits_for}</p>`,
		proof_ended &&
			warning(
				'Its proof has ended:',
				proof_ended.by,
				', ',
				time(proof_ended.at, 'ago'),
				'. Its evacuate gate is closed until it is fenced again.',
			),
		suspension && warning('Suspended:', `${suspension.reason} (${suspension.by}),`, ends(suspension), '.'),
		quarantined_at &&
			warning(
				'In quarantine',
				'since ',
				time(quarantined_at),
				': fenced too often. It is taken back only where a rejoin is asked for.',
			),
		alarms.map(({ problem, condition, times, within_s }) =>
			warning('Alarm:', `${problem} ${condition ?? ''} ${times} times within ${span(within_s * 1000)}.`),
		),
		kdump && !kdump.is_over && warning('It writes a crash dump', 'since ', time(kdump.since, 'ago'), '.'),
		left_at && warning('Its cloud has not named it', 'since ', time(left_at), '. That proves nothing.'),
		html`<p class="quiet">Seen ${seen.failure_state}${failure_since && [' since ', time(failure_since, 'ago')]}: ${seen.because}</p>`,
	];
}

/** @param {string} name @param {string} question @param {Api.Gate} gate */
function gate(name, question, { allowed, reason }) {
	const state = allowed ? 'open' : 'closed';
	return line([sign(state, `${name} gate ${state}`), html` <small>${question}</small>`, words(reason)]);
}

/** @param {Api.Explanation} explanation */
function gates({ gates: { schedule, evacuate } }) {
	return panel(
		'Gates',
		lines([
			gate('schedule', 'May workloads be scheduled here?', schedule),
			gate('evacuate', 'May its workloads be started elsewhere?', evacuate),
		]),
	);
}

/** @param {Api.Host} host */
function sources({ sources, conditions = [] }) {
	const seen = sources.map(({ name, state, alive_at, observed_at }) => {
		const alive = state !== 'UP' && alive_at && html`<small>alive ${time(alive_at, 'ago')}</small>`;
		return line([html`<b>${name}</b> `, sign(state), ' ', alive], time(observed_at, 'ago'), name);
	});
	const said = conditions.map(({ name, status, action, reason, source, since }) => {
		const does = action && ` (${action.replace('_', ' ')})`;
		return line(
			[html`<b>${name}</b> `, status, does, words(reason)],
			[`${source}, since `, time(since, 'ago')],
			`${source} ${name}`,
		);
	});
	return panel(
		'Sources',
		lines(seen) || html`<p class="empty">No source has seen it.</p>`,
		said.length > 0 && [html`<h3>Conditions</h3>`, lines(said)],
	);
}

/** @param {Api.Host} host */
function proofs({ fenced_at, proofs, applied_fencing }) {
	const taken = applied_fencing.map(({ kind, method, confirmed }) =>
		line(
			[html`<b>${kind}</b>`, ` by ${method}`],
			confirmed === false && 'perhaps: it was not read back',
			`${kind} ${method}`,
		),
	);
	if (!fenced_at && taken.length === 0) return null;
	return panel(
		fenced_at ? 'Proofs' : 'Taken from it',
		fenced_at && html`<p class="quiet">FENCED since ${time(fenced_at)}, ${time(fenced_at, 'ago')}</p>`,
		lines(proofs.map(proofLine)),
		fenced_at && taken.length > 0 && html`<h3>Taken from it</h3>`,
		lines(taken),
	);
}

/** @param {Api.Host} host */
const about = ({ backend, cloud, type, zone, known_as, boot_id, labels, id }) =>
	panel('About', fields({ backend, cloud, type, zone, known_as, boot_id, labels, id }));

/** @param {Api.Operation} operation @param {number} i */
function timeline(operation, i) {
	const { id, kind, status, generation, created_at, finished_at, detail } = operation;
	const took = finished_at && `, took ${span(Date.parse(finished_at) - Date.parse(created_at))}`;
	return html`<details class="operation" data-key=${id} open=${i === 0}>
    <summary><b>${kind}</b> ${sign(status)} <small>generation ${generation}, ${time(created_at, 'ago')}${took}</small></summary>
    <p>${detail} ${link(operationPath(id), 'All of it')}</p>
    ${drawTiming(operation)}
    ${drawOperation(operation)}
  </details>`;
}

/** @param {Api.Explanation} explanation */
function automatic({ fence: { storm_brake: brake, safeguards } }) {
	const told = !brake.is_automatic
		? 'Its segment fences only if asked.'
		: brake.would_hold
			? `The storm brake would hold an automatic fence: ${brake.reason}`
			: 'The storm brake would not hold an automatic fence.';
	const rulings = safeguards.map(({ safeguard, verdict, reason }) =>
		line([sign(verdict, safeguard), words(reason)], '', safeguard),
	);
	return [
		html`<p>${told}${brake.due_at && [' Due ', time(brake.due_at, 'ago'), '.']}</p>`,
		rulings.length > 0 && html`<p class="quiet">If it were silent, its safeguards would say:</p>`,
		lines(rulings),
	];
}

/** @param {Api.Event[]} events @param {string} query */
const history = (events, query) =>
	listed(
		'History',
		events.map(event => line(told(event), time(event.occurred_at, 'ago'), event.sequence)),
		link(`/dashboard/events?sort=sequence:desc&${query}`, 'All events'),
	);

/** @param {Api.Audit[]} audit @param {string} query */
const record = (audit, query) =>
	listed(
		'Audit',
		audit.map(({ id, action, actor, detail, at }) =>
			line([html`<b>${action}</b>`, ` by ${actor}`, words(detail.reason)], time(at, 'ago'), id),
		),
		link(`/dashboard/audit?${query}`, 'All of its audit'),
	);

/** @param {string} name */
export const hostView = name => html`<rf-host .name=${name}></rf-host>`;
