/** The lists of hosts and operations. */

import { cancel, manyActions, retry } from '../act.js';
import { html } from '../dom.js';
import { doing, link, linkTo } from '../parts.js';
import { operationPath } from '../router.js';
import { may } from '../session.js';
import { glyph, kindOf, sign } from '../shapes.js';
import { placeOf } from '../table.js';
import { time } from '../time.js';
import { progress } from '../words.js';

/** @type {List<Api.Host>} */
export const hosts = {
	path: '/hosts',
	filters: [
		'name',
		'segment=',
		'failure_state=UP,UNREACHABLE,UNKNOWN',
		'fencing_state=FENCED,UNFENCED',
		'backend=nova,kubernetes,none',
		'type',
		'zone',
		'quarantined=true,false',
		'alarmed=true,false',
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
		{ head: 'Operation', cell: ({ operation }) => doing(operation) },
		'segment',
		{ head: 'Backend', cell: ({ backend, cloud }) => [backend, cloud].filter(Boolean).join(':') },
		'zone',
	],
	actions: manyActions,
};

/** @type {List<Api.Operation>} */
const operations = {
	path: '/operations',
	filters: [
		'host',
		'status=running,held,needs_operator,succeeded,cancelled',
		'kind=fence,rejoin,evacuation',
		'created_at',
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
		'requested_by',
		'detail',
	],
	actions: (rows, again) =>
		may('service')
			? [
					{ label: 'Retry', run: () => retry(rows, again) },
					{ label: 'Cancel', run: () => cancel(rows, again) },
				]
			: [],
};

/** @param {Api.Operation} operation */
function tasks(operation) {
	const { done, all } = progress(operation);
	return `${done}/${all}`;
}

/** @type {Record<string, Place>} */
export const lists = {
	hosts: placeOf(hosts),
	operations: placeOf(operations),
};
