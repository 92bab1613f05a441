import { why } from './api.js';
import { html } from './dom.js';
import { operationPath } from './router.js';
import { sign } from './shapes.js';
import { time } from './time.js';

/** @param {Child} title @param {...Child} children */
export const panel = (title, ...children) =>
	html`<section class="panel"><h2>${title}</h2>${children}</section>`;

/** @param {Child} left @param {Child} [right] @param {string | number} [key] */
export const line = (left, right, key) =>
	html`<li data-key=${key}><span>${left}</span><small>${right}</small></li>`;

/** @param {Child[]} items */
export const lines = items => items.some(Boolean) && html`<ul class="lines">${items}</ul>`;

/** A part with lines; nothing if there are none. @param {string} title @param {Child[]} items @param {...Child} more */
export const listed = (title, items, ...more) => items.some(Boolean) && panel(title, lines(items), more);

/** @param {string} href @param {...Child} children */
export const link = (href, ...children) => html`<a href=${href}>${children}</a>`;

/** @param {string} place @param {string} name */
export const linkTo = (place, name) => link(`/dashboard/${place}/${encodeURIComponent(name)}`, name);

/** @param {Api.LiveOperation | null | undefined} op */
export const doing = op =>
	op && link(operationPath(op.id), sign(op.status, `${op.kind} ${op.status.replace('_', ' ')}`));

/** @param {string | null | undefined} text */
export const words = text => text && html`<em>${text}</em>`;

/** @param {Api.Proof} proof */
export const proofLine = proof =>
	line(
		[
			sign(proof.ended ? 'ended' : 'confirmed', proof.kind),
			` by ${proof.source}`,
			words(proof.detail),
			proof.ended && words(`Ended: ${proof.ended.by}`),
		],
		time(proof.observed_at, 'ago'),
	);

/** @param {Api.Suspension} suspension */
export const ends = ({ until }) => [' ends ', until ? time(until, 'ago') : 'when a person ends it'];

export const loading = () => html`<p class="quiet loading">Loading</p>`;

/** @param {unknown} error */
export function failed(error) {
	const { status } = /** @type {import('./api.js').Fault} */ (error);
	const head = status === 403 ? 'Not for your role.' : status === 404 ? 'Not found.' : 'Could not be read.';
	return html`<p class="failed" role="alert"><b>${head}</b> ${why(error)}</p>`;
}

/** What may be done; what is right now stands out. @param {Action[]} actions */
export const buttons = actions =>
	actions.length > 0 &&
	html`<p class="buttons">${actions.map(
		({ label, run, isMain }) =>
			html`<button type="button" data-key=${label} class=${isMain && 'primary'} @click=${run}>${label}...</button>`,
	)}</p>`;
