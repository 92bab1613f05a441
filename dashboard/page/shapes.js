/** A shape and a colour of its own for each kind of host and for each word of the API. */

import { html } from './dom.js';

/** By what matters first: an outline in a square of 10, and the list that shows them. @type {Record<CellKind, Record<'label' | 'path' | 'list', string>>} */
export const KINDS = {
	needs: {
		label: 'needs a person',
		path: 'M.5.5h9v9h-9zM4.2 2v3.9h1.6V2zM4.2 6.8v1.5h1.6V6.8z',
		list: 'operations?status=needs_operator',
	},
	lapsed: {
		label: 'FENCED, proof ended',
		path: 'M1 1h7L1 8zM9 2v7H2z',
		list: 'hosts?fencing_state=FENCED&failure_state=neq:UP',
	},
	silent: {
		label: 'UNREACHABLE',
		path: 'M5 .8 9.5 9H.5z',
		list: 'hosts?failure_state=UNREACHABLE&fencing_state=UNFENCED',
	},
	held: {
		label: 'fence held',
		path: 'M1.5 1.5h2.6v7H1.5zM5.9 1.5h2.6v7H5.9z',
		list: 'operations?status=held',
	},
	work: { label: 'operation runs', path: 'M5 .2 9.8 5 5 9.8.2 5z', list: 'operations?status=running' },
	back: {
		label: 'FENCED, UP again',
		path: 'M1 1h8v8H1zM2.6 2.6v4.8h4.8V2.6zM4 4h2v2H4z',
		list: 'hosts?fencing_state=FENCED&failure_state=UP',
	},
	fenced: { label: 'FENCED', path: 'M1 1h8v8H1z', list: 'hosts?fencing_state=FENCED&failure_state=neq:UP' },
	unknown: {
		label: 'UNKNOWN',
		path: 'M5 1a4 4 0 1 0 0 8 4 4 0 1 0 0-8zM5 2.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 1 1 0-5z',
		list: 'hosts?failure_state=UNKNOWN&fencing_state=UNFENCED',
	},
	up: { label: 'UP', path: 'M2.6 2.6h4.8v4.8H2.6z', list: 'hosts?failure_state=UP&fencing_state=UNFENCED' },
};

/** @param {Stated} host @returns {CellKind} */
export function kindOf(host) {
	const status = host.operation?.status;
	if (status === 'needs_operator') return 'needs';
	if (status === 'held') return 'held';
	if (status === 'running') return 'work';
	if (host.fencing_state === 'FENCED') {
		if (host.failure_state === 'UP') return 'back';
		return host.proof_ended || host.marks?.includes('proof_ended') ? 'lapsed' : 'fenced';
	}
	return host.failure_state === 'UP' ? 'up' : host.failure_state === 'UNREACHABLE' ? 'silent' : 'unknown';
}

/** @param {CellKind} kind */
export const glyph = kind => shape(KINDS[kind].path, kind);

/** @param {string} path @param {string} tone a colour's name */
const shape = (path, tone) =>
	html`<svg class="glyph" viewBox="0 0 10 10" aria-hidden="true"><path fill="var(--${tone})" fill-rule="evenodd" d=${path} /></svg>`;

const CHECK = 'M4 8.6.6 5.2l1.3-1.3L4 6l4.1-4.3L9.4 3z';
const CROSS = 'M1 2.3 2.3 1 5 3.7 7.7 1 9 2.3 6.3 5 9 7.7 7.7 9 5 6.3 2.3 9 1 7.7 3.7 5z';
const QUESTION =
	'M2 3.4C2 1.6 3.3.6 5 .6s3 1 3 2.7c0 2.1-2.2 2-2.2 3.4H4.2c0-2.3 2.1-2.1 2.1-3.3C6.3 2.6 5.8 2.2 5 2.2s-1.3.4-1.3 1.2zM4.2 7.8h1.6v1.7H4.2z';
const RING = 'M5 1a4 4 0 1 0 0 8 4 4 0 1 0 0-8zM5 2.6a2.4 2.4 0 1 1 0 4.8 2.4 2.4 0 1 1 0-4.8z';
const DASH = 'M1 4.1h8v1.8H1z';

/** Outcomes and states that are words of the API. @type {Record<string, [path: string, tone: string]>} */
const SIGNS = {
	confirmed: [CHECK, 'good'],
	succeeded: [CHECK, 'good'],
	delivered: [CHECK, 'good'],
	open: [CHECK, 'good'],
	allow: [CHECK, 'good'],
	UP: [KINDS.up.path, 'up'],
	FENCED: [KINDS.fenced.path, 'fenced'],
	UNFENCED: [RING, 'quiet'],
	UNREACHABLE: [KINDS.silent.path, 'silent'],
	UNKNOWN: [KINDS.unknown.path, 'unknown'],
	needs_operator: [KINDS.needs.path, 'needs'],
	refused: [CROSS, 'bad'],
	failed: [CROSS, 'bad'],
	closed: [CROSS, 'bad'],
	ended: [CROSS, 'bad'],
	hold: [KINDS.held.path, 'held'],
	held: [KINDS.held.path, 'held'],
	running: [KINDS.work.path, 'work'],
	claimed: [KINDS.work.path, 'work'],
	unknown: [QUESTION, 'warn'],
	worker_missing: [QUESTION, 'warn'],
	cancelled: [DASH, 'quiet'],
	skipped: [DASH, 'quiet'],
};

/** @param {string} word */
export const mark = word => shape(...(SIGNS[word] ?? [RING, 'quiet']));

/** @param {string} word @param {Child} [text] what is read, if not the word */
export const sign = (word, text = word.replaceAll('_', ' ')) =>
	html`<span class="sign">${mark(word)}${text}</span>`;
