/** Methods, plans, segments and subscriptions, each with what became of it. */

import { pauses, suspendableSegment } from '../act.js';
import { send } from '../api.js';
import { ask } from '../dialog.js';
import { html } from '../dom.js';
import { buttons, ends, link, linkTo, panel } from '../parts.js';
import { drawPlan } from '../plan.js';
import { may } from '../session.js';
import { sign } from '../shapes.js';
import { placeOf } from '../table.js';
import { span, time } from '../time.js';
import { fields } from '../value.js';
import { count } from '../words.js';
import { hosts } from './lists.js';

/** @type {List<Api.Method>} */
const methods = {
	title: 'Devices',
	path: '/methods',
	columns: ['name', 'resource', 'driver', 'zone', { head: 'Last checks', cell: health }],
};

/** @param {Api.Method} method */
export function health({ checks }) {
	if (!checks) return 'not checked';
	const { outcome, failing, targets, answered, failing_since, last_checked_at } = checks;
	const told = failing > 0 ? `${failing} of ${targets} not good` : `${answered} of ${targets} good`;
	const since = failing_since ? ['since ', time(failing_since, 'ago')] : time(last_checked_at, 'ago');
	return [sign(outcome ?? 'none', told), html`<small>${since}</small>`];
}

/** @param {string} path @param {string[]} targets hosts; empty: as is filled in @param {After} after */
const check = (path, targets, after) =>
	ask({
		title: 'Check now',
		verb: 'Check now',
		isPlain: true,
		targets,
		name: host => host || 'Device',
		about: html`<p>A worker asks the device for its state. Nothing is changed.</p>`,
		fields: targets[0] ? [] : [{ name: 'host', label: 'Host (if the parameters name it)' }],
		act: async (target, values) => {
			const host = target || values.host?.trim() || undefined;
			const { observation, took_ms, worker } = (await send('POST', `${path}/check`, { host })).body;
			const said = `${host ?? 'Device'}: ${observation.detail}, ${span(took_ms)}, by worker ${worker}`;
			if (observation.state === 'unknown') throw new Error(said);
			return said;
		},
		after,
	});

/** @param {string} path @param {string[]} hosts @param {After} after @returns {Action[]} */
const checks = (path, hosts, after) =>
	may('service') ? [{ label: 'Check now', run: () => check(path, hosts, after) }] : [];

/** @type {(path: string) => List<Api.Check>} */
const method = path => ({
	of: [path],
	about: ([{ resource, driver, zone, parameters, secrets, times }], again) => [
		buttons(checks(path, [''], again)),
		panel('Method', fields({ resource, driver, zone, parameters, secrets: Object.keys(secrets), times })),
	],
	head: 'Last checks',
	path: `${path}/checks`,
	filters: ['failing=true,false'],
	columns: ['host', 'outcome', 'state', 'checked_at', 'took_ms', 'failing_since', 'next_at', 'detail'],
	actions: (rows, again) =>
		checks(
			path,
			rows.map(({ host }) => host ?? ''),
			again,
		),
});

/** @param {Api.Plan} plan */
function scope({ scope: { kind, value } }) {
	if (!value) return 'hosts that no other plan is for';
	if (kind === 'host') return ['host ', linkTo('hosts', value)];
	return ['hosts of type ', link(`/dashboard/hosts?type=${encodeURIComponent(value)}`, value)];
}

/** @param {Api.Plan} plan */
const sets = ({ sufficient_sets }) => sufficient_sets.map(set => set.join(' + '));

/** @type {List<Api.Plan>} */
const plans = {
	path: '/plans',
	columns: [
		'name',
		{ head: 'For', cell: scope },
		{
			head: 'Stages',
			cell: ({ stages }) =>
				stages.map(({ tasks }) => tasks.map(({ kind }) => kind).join(' + ')).join(' → ') ||
				'none: done by hand',
		},
		{ head: 'Sufficient sets', cell: plan => sets(plan).join(', or ') },
	],
};

/** @type {(path: string, name: string) => List<unknown>} */
const plan = (path, name) => ({
	of: ['/methods'],
	path,
	columns: [],
	about: ([{ methods }, plan]) => {
		const resolved = (/** @type {string} */ name) => {
			const { driver, checks } = methods.find((/** @type {Api.Method} */ each) => each.name === name) ?? {};
			const last_check = checks?.last_checked_at && { ...checks, checked_at: checks.last_checked_at };
			return { name, driver, last_check, hindrances: [] };
		};
		const levels = (/** @type {Api.Level} */ each) => ({
			...each,
			methods: each.methods.map(resolved),
		});
		const stages = /** @type {Api.Plan} */ (plan).stages.map(stage => ({
			...stage,
			tasks: stage.tasks.map(task => ({ ...task, levels: task.levels.map(levels) })),
		}));
		return [
			html`<p>For ${scope(plan)}.</p>`,
			panel('What a fence does', drawPlan({ name, stages }, [])),
			panel(
				'Each of these sets is enough',
				html`<ul class="sets">${sets(plan).map(set => html`<li>${sign(set)}</li>`)}</ul>`,
			),
		];
	},
});

/** @param {Api.Segment} segment @param {Api.Suspended[]} of */
function stopped({ id }, [suspended]) {
	const { suspension } = suspended?.segments.find(each => each.id === id) ?? {};
	return suspension && [sign('held', suspension.by), `: ${suspension.reason},`, ends(suspension)];
}

/** @param {boolean} is */
const itself = is => (is ? 'by itself' : 'if asked');

/** @type {List<Api.Segment>} */
const segments = {
	path: '/segments',
	of: ['/suspensions'],
	columns: [
		'name',
		{ head: 'Fences', cell: ({ policy }) => itself(policy.fencing.automatic) },
		{ head: 'Evacuates', cell: ({ policy }) => itself(policy.evacuation.automatic) },
		{ head: 'Suspended', cell: stopped },
		'description',
	],
	actions: (rows, again) => pauses(rows.map(suspendableSegment), again),
};

/** @type {(path: string, name: string) => List<Api.Host>} */
const segment = (path, name) => ({
	...hosts,
	of: ['/suspensions', path],
	about: ([suspended, it], again) => {
		const { fencing, evacuation, ...policy } = it.policy;
		const why = stopped(it, [suspended]);
		return [
			html`<p>${it.description}</p>`,
			why && html`<p class="warn"><b>Suspended:</b> ${why}</p>`,
			buttons(pauses([suspendableSegment(it)], again).filter((_, i) => i === Number(Boolean(why)))),
			html`<div class="grid">${Object.entries({ Policy: policy, Fencing: fencing, Evacuation: evacuation }).map(([part, it]) => panel(part, fields(it)))}</div>`,
			may('admin') && html`<p>${link('/dashboard/audit?action=segment.', 'Audit of segments')}</p>`,
		];
	},
	head: 'Hosts',
	path: `/hosts?segment=${encodeURIComponent(name)}`,
	filters: [],
});

/** @type {List<Api.Subscription>} */
const subscriptions = {
	path: '/subscriptions',
	columns: ['name', { head: 'State', cell: delivers }, 'url', 'format', 'types'],
};

/** @param {Api.Subscription} subscription */
export function delivers({ enabled, disabled_reason, retrying }) {
	if (disabled_reason) return [sign('failed', 'disabled'), `: ${disabled_reason}`];
	if (!enabled) return sign('skipped', 'turned off');
	return retrying > 0
		? sign('unknown', `${count(retrying, 'event')} not delivered yet`)
		: sign('delivered', 'delivers');
}

/** @param {string} verb @param {string} path @param {Api.Delivery[]} targets @param {After} after */
const deliver = (verb, path, targets, after) =>
	ask({
		title: verb,
		verb,
		isPlain: true,
		targets,
		name: ({ event_type }) => event_type,
		about: html`<p>It is sent to the receiver within seconds. The list of deliveries says what came of it.</p>`,
		act: async ({ id, event_type }) => {
			await send('POST', `${path}/${id ? `deliveries/${id}/redeliver` : 'test'}`);
			return `${event_type}: accepted.`;
		},
		after,
	});

/** @type {(path: string) => List<Api.Delivery>} */
const subscription = path => ({
	of: [path],
	about: ([it], again) => {
		const test = /** @type {Api.Delivery} */ ({ event_type: 'test' });
		const { description, url, format, types, segments, hosts, after } = it;
		return [
			html`<p>${delivers(it)}</p>`,
			may('admin') && buttons([{ label: 'Test', run: () => deliver('Test', path, [test], again) }]),
			panel(
				'Subscription',
				fields({
					description,
					url,
					format,
					types,
					segments,
					hosts,
					'done up to event': after,
				}),
			),
		];
	},
	head: 'Deliveries',
	path: `${path}/deliveries`,
	filters: ['status=pending,delivered,failed'],
	columns: [
		'event_type',
		'sequence',
		'host',
		'kind',
		'status',
		'created_at',
		'tries',
		'next_at',
		'answer',
		'took_ms',
		'detail',
	],
	actions: (rows, again) =>
		may('admin') ? [{ label: 'Redeliver', run: () => deliver('Redeliver', path, rows, again) }] : [],
});

/** @type {Record<string, Place>} */
export const configured = {
	methods: placeOf(methods, method),
	plans: placeOf(plans, plan),
	segments: placeOf(segments, segment),
	subscriptions: placeOf(subscriptions, subscription),
};
