/** Events, the audit trail, and the caller's sessions. */

import { send } from '../api.js';
import { ask } from '../dialog.js';
import { html } from '../dom.js';
import { linkTo } from '../parts.js';
import { placeOf } from '../table.js';
import { value } from '../value.js';
import { EVENTS, told } from '../words.js';

/** @type {List<Api.Event>} */
const events = {
	path: '/events?sort=sequence:desc',
	filters: ['host', `type=${Object.keys(EVENTS)}`, 'after'],
	columns: [
		{ head: 'Number', sort: 'sequence', cell: ({ sequence }) => sequence },
		'occurred_at',
		'host',
		'type',
		{ head: 'What', isWide: true, cell: event => [html`<div>${told(event)}</div>`, value('', event.data)] },
	],
};

/** @type {List<Api.Audit>} */
const audit = {
	path: '/audit',
	filters: ['host', 'actor', 'action', 'since', 'until', 'request_id', 'global_request_id'],
	columns: [
		'at',
		'actor',
		'action',
		{ head: 'Target', cell: ({ target, host_id }) => target && (host_id ? linkTo('hosts', target) : target) },
		'detail',
		'origin',
		'request_id',
	],
};

/** @type {List<Api.Session>} */
const sessions = {
	path: '/sessions',
	columns: [
		'signed_in_at',
		'address',
		'expires_at',
		{ head: 'This one', cell: ({ is_current }) => is_current && 'yes' },
	],
	actions: (targets, after) => [
		{
			label: 'End',
			run: () =>
				ask({
					title: 'End sessions',
					verb: 'End',
					isPlain: true,
					targets,
					name: ({ address }) => `Session from ${address}`,
					about: html`<p>Signs these browsers out.</p>`,
					act: async ({ id, address }) => {
						await send('DELETE', `/sessions/${id}`);
						return `Session from ${address}: ended.`;
					},
					after,
				}),
		},
	],
};

/** @type {Record<string, Place>} */
export const records = {
	audit: { ...placeOf(audit), isForAdmins: true },
	events: placeOf(events),
	sessions: { ...placeOf(sessions), isApart: true },
};
