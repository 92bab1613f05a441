/** The lists of the API, each with its filters, by the first part of their address. */

import { cancel, manyActions, retry } from '../act.js';
import { read } from '../api.js';
import { html } from '../dom.js';
import { link, linkTo } from '../parts.js';
import { operationPath } from '../router.js';
import { may } from '../session.js';
import { glyph, kindOf, sign } from '../shapes.js';
import { listView } from '../table.js';
import { time } from '../time.js';
import { progress } from '../words.js';

/** @param {...string} values @returns {[string, string][]} */
const choices = (...values) => values.map(value => [value, value.replaceAll('_', ' ')]);

/** @returns {Promise<[string, string][]>} */
async function segments() {
	/** @type {{ segments: { name: string }[] }} */
	const { segments } = await read('/segments');
	return segments.map(({ name }) => [name, name]);
}

/** @type {List<Api.Host>} */
const hosts = {
	title: 'Hosts',
	path: '/hosts',
	rows: 'hosts',
	one: 'host',
	key: ({ id }) => id,
	empty: 'No hosts yet. Add some with: ringfence host add',
	filters: [
		{ name: 'name', label: 'Name', hint: 'in:sim-1,sim-2' },
		{ name: 'segment', label: 'Segment', kind: 'choice', choices: segments },
		{
			name: 'failure_state',
			label: 'Failure state',
			kind: 'choice',
			choices: choices('UP', 'UNREACHABLE', 'UNKNOWN'),
		},
		{ name: 'fencing_state', label: 'Fencing state', kind: 'choice', choices: choices('FENCED', 'UNFENCED') },
		{ name: 'backend', label: 'Backend', kind: 'choice', choices: choices('nova', 'kubernetes', 'none') },
		{ name: 'type', label: 'Type' },
		{ name: 'zone', label: 'Zone' },
		{ name: 'quarantined', label: 'In quarantine', kind: 'choice', choices: choices('true', 'false') },
		{ name: 'alarmed', label: 'Alarm stands', kind: 'choice', choices: choices('true', 'false') },
	],
	columns: [
		{ head: 'Host', sort: 'name', cell: host => [glyph(kindOf(host)), linkTo('hosts', host.name)] },
		{
			head: 'Seen',
			cell: ({ failure_state, failure_since }) => [
				sign(failure_state),
				' ',
				html`<small>${time(failure_since, 'ago')}</small>`,
			],
		},
		{
			head: 'Fencing',
			cell: host => [sign(host.fencing_state), host.proof_ended && html` <small>proof ended</small>`],
		},
		{
			head: 'Operation',
			cell: ({ operation: op }) =>
				op && link(operationPath(op.id), sign(op.status, `${op.kind} ${op.status.replace('_', ' ')}`)),
		},
		{ head: 'Segment', cell: ({ segment }) => linkTo('segments', segment) },
		{ head: 'Backend', cell: ({ backend, cloud }) => [backend, cloud].filter(Boolean).join(':') },
		{ head: 'Zone', cell: ({ zone }) => zone },
	],
	actions: manyActions,
	moves: ({ host }) => host != null,
};

/** @type {List<Api.Operation>} */
const operations = {
	title: 'Operations',
	path: '/operations',
	rows: 'operations',
	one: 'operation',
	key: ({ id }) => id,
	empty: 'No operation has begun yet.',
	filters: [
		{ name: 'host', label: 'Host' },
		{
			name: 'status',
			label: 'Status',
			kind: 'choice',
			choices: choices('running', 'held', 'needs_operator', 'succeeded', 'cancelled'),
		},
		{ name: 'kind', label: 'Kind', kind: 'choice', choices: choices('fence', 'rejoin', 'evacuation') },
		{ name: 'created_at', label: 'Began', kind: 'time' },
	],
	columns: [
		{
			head: 'Operation',
			cell: ({ id, host, kind }) =>
				link(operationPath(id), html`<b>${host ?? 'removed host'}</b>`, ` ${kind}`),
		},
		{
			head: 'Status',
			cell: each => [sign(each.status), each.is_held_by_brake && html` <small>storm brake</small>`],
		},
		{ head: 'Tasks', cell: tasks },
		{ head: 'Began', sort: 'created_at', cell: ({ created_at }) => time(created_at, 'ago') },
		{ head: 'By', cell: ({ requested_by }) => requested_by },
		{ head: 'Detail', isWide: true, cell: ({ detail }) => detail },
	],
	actions: (rows, again) =>
		may('service')
			? [
					{ label: 'Retry', run: () => retry(rows, again) },
					{ label: 'Cancel', run: () => cancel(rows, again) },
				]
			: [],
	moves: ({ type }) => type.startsWith('operation.'),
};

/** @param {Api.Operation} operation */
function tasks(operation) {
	const { done, all } = progress(operation);
	return `${done}/${all}`;
}

/** @type {Record<string, Place>} */
export const lists = {
	hosts: { title: 'Hosts', list: () => listView(hosts) },
	operations: { title: 'Operations', list: () => listView(operations) },
};
