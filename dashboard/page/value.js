/** Fields of the API as a person reads them. */

import { html } from './dom.js';
import { linkTo } from './parts.js';
import { sign } from './shapes.js';
import { time } from './time.js';
import { capital } from './words.js';

/** Where the things are that a field names. @type {Record<string, string>} */
const PLACES = {
	host: 'hosts',
	operation_id: 'operations',
	segment: 'segments',
	plan: 'plans',
	method: 'methods',
	heartbeats: 'methods',
	ceph: 'methods',
	queries: 'methods',
	subscription: 'subscriptions',
};
/** Where none is named, all are meant. */
const ALL = ['types', 'segments', 'hosts'];
const UNITS = { _s: ' s', _ms: ' ms', _percent: ' %' };
const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

/** @param {string} name @param {any} it @returns {Child} */
export function value(name, it) {
	if (it == null || it === '') return '-';
	if (typeof it === 'boolean') return it ? 'yes' : 'no';
	if (typeof it === 'object' && Object.keys(it).length === 0) return ALL.includes(name) ? 'all' : '-';
	if (Array.isArray(it))
		return it.map((each, i) => [i > 0 && typeof each !== 'object' && ', ', value(name, each)]);
	if (typeof it === 'object') return particulars(it);
	if (PLACES[name]) return linkTo(PLACES[name], it);
	if (['status', 'outcome'].includes(name)) return sign(it);
	if (TIME.test(it)) return time(it);
	const unit = Object.entries(UNITS).find(([end]) => name.endsWith(end));
	return `${it}${unit?.[1] ?? ''}`;
}

/** @param {string} name */
export const label = name => capital(name.replace(/_(s|ms|at|id)$/, '').replaceAll('_', ' '));

/** @param {object} data */
const particulars = data =>
	html`<span class="states">${Object.entries(data).map(([name, it]) => html`<span><small>${name}</small> ${value(name, it)}</span>`)}</span>`;

/** @param {object} data */
export const fields = data =>
	html`<dl>${Object.entries(data).map(([name, it]) => [html`<dt>${label(name)}</dt>`, html`<dd>${value(name, it)}</dd>`])}</dl>`;
