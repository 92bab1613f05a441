/** One operation, live. */

import { operationActions } from '../act.js';
import { read } from '../api.js';
import { html, morph } from '../dom.js';
import { buttons, line, lines, linkTo, listed, loading, panel, proofLine, words } from '../parts.js';
import { sign } from '../shapes.js';
import { site } from '../site.js';
import { time } from '../time.js';
import { drawOperation, drawTiming } from '../timeline.js';
import { fields } from '../value.js';
import { spaced, View } from '../view.js';
import { capital, count, progress, todo } from '../words.js';

const AGAIN_MS = 700;
const RUNNING_MS = 2000;

class OperationView extends View {
	name = '';
	/** @type {Api.Operation | null} */
	#operation = null;
	#again = spaced(AGAIN_MS, () => this.attempt(() => this.#read()));

	start() {
		morph(this, html`<header class="head"><h1 tabindex="-1">Operation</h1></header>`, loading());
		this.#again();
		this.on(site, 'event', ({ detail }) => detail.host === this.#operation?.host && this.#again());
		this.on(site, 'fresh', this.#again);
		this.every(RUNNING_MS, () => !this.#operation?.finished_at && this.#again());
	}

	async #read() {
		const { signal } = this.gone;
		const path = `/operations/${encodeURIComponent(this.name)}`;
		/** @type {Api.Operation} */
		const operation = await read(path, signal);
		this.#operation = operation;
		this.#draw(operation, operation.kind === 'evacuation' ? (await read(`${path}/moves`, signal)).moves : []);
	}

	/** @param {Api.Operation} operation @param {Api.Move[]} moves */
	#draw(operation, moves) {
		morph(
			this,
			head(operation),
			html`<div class="now">${situation(operation)}</div>`,
			buttons(operationActions(operation, this.#again)),
			panel('Over time', drawTiming(operation), drawOperation(operation)),
			moves.length > 0 && drawMoves(moves),
			html`<div class="grid">${[listed('Proofs', operation.proofs.map(proofLine)), about(operation)]}</div>`,
		);
	}
}
customElements.define('rf-operation', OperationView);

/** @param {Api.Operation} operation */
const head = ({ kind, host, status, generation, round }) =>
	html`<header class="head">
    <h1 tabindex="-1">${capital(kind)} of ${host ? linkTo('hosts', host) : 'a removed host'}</h1>
    <p class="states">${sign(status)}<span>generation ${generation}</span>${round > 0 && html`<span>started again ${count(round, 'time')}</span>`}</p>
  </header>`;

/** @param {Api.Operation} operation */
function situation(operation) {
	const { detail, status, restart_at, held, finished_at } = operation;
	const { done, all } = progress(operation);
	return [
		html`<p><b>${detail}</b></p>`,
		status === 'needs_operator' && html`<p class="warn">${todo(operation)}</p>`,
		restart_at && html`<p>Starts again ${time(restart_at, 'ago')}.</p>`,
		held?.by.map(
			({ verdict, safeguard, reason, release }) =>
				html`<p>${sign(verdict, safeguard)} ${reason}${release && words(`Ends: ${release}`)}</p>`,
		),
		!finished_at &&
			html`<progress max=${Math.max(all, 1)} value=${done} aria-label="${done} of ${all} tasks done"></progress>`,
	];
}

/** @param {Api.Move[]} moves */
function drawMoves(moves) {
	const over = moves.filter(({ status }) => status === 'confirmed').length;
	const rows = moves.map(({ id, name, status, state, detail, to, attempts }) =>
		line(
			[sign(status), html` <b>${name}</b>`, html` <small>was ${state}</small>`, words(detail)],
			[to && `now on ${to}`, attempts > 1 && `, ${attempts} tries`],
			id,
		),
	);
	return panel(`Workloads (${over} of ${moves.length} moved)`, lines(rows));
}

/** @param {Api.Operation} operation */
const about = ({ reason, requested_by, plan, created_at, finished_at, id }) =>
	panel('About', fields({ reason, requested_by, plan, created_at, finished_at, id }));

/** @param {string} id */
export const operationView = id => html`<rf-operation .name=${id}></rf-operation>`;
