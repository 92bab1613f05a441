/** What needs a person, the most urgent first, and what to do. */

import { cancel, fence, operationActions, rejoin, retry, withHosts } from './act.js';
import { hostPath, operationPath } from './router.js';
import { may } from './session.js';
import { KINDS, kindOf } from './shapes.js';
import { site } from './site.js';
import { count, names, todo } from './words.js';

const SINGLY = 3;

/** @param {Api.Operation[]} waiting @param {Api.Method[]} methods @param {Api.Subscription[]} subscriptions @returns {Need[]} */
export function needs(waiting, methods, subscriptions) {
	const braked = Map.groupBy(
		waiting.filter(each => each.is_held_by_brake),
		each => site.hosts.get(each.host ?? '')?.segment ?? '',
	);
	const needs = [
		...[...braked].map(([segment, operations]) => brake(segment, operations)),
		...waiting.filter(each => !each.is_held_by_brake).map(stuck),
		...HOSTS.flatMap(hostNeeds),
		...methods.flatMap(device),
		...subscriptions.flatMap(subscription),
	];
	return may('service') ? needs : needs.map(need => ({ ...need, actions: [] }));
}

/** @param {string} segment @param {Api.Operation[]} operations @returns {Need} */
function brake(segment, operations) {
	const hosts = operations.map(each => each.host ?? each.id);
	const [first] = operations;
	return {
		key: `brake ${segment}`,
		kind: 'needs',
		title: `Storm brake: ${count(operations.length, 'fence')} of ${segment} held (${names(hosts)})`,
		why: first?.detail ?? '',
		todo: first ? todo(first) : '',
		href: '/dashboard/operations?status=needs_operator',
		since: operations.map(each => each.created_at).sort()[0],
		actions: [
			{ label: 'Release', isMain: true, run: () => retry(operations) },
			{ label: 'Cancel', run: () => cancel(operations) },
		],
	};
}

/** @param {Api.Operation} operation @returns {Need} */
function stuck(operation) {
	const { id, kind, host, host_id, detail, restart_at, updated_at } = operation;
	return {
		key: id,
		kind: 'needs',
		title: `${host ?? host_id}: its ${kind} ${restart_at ? 'has failed' : 'waits for you'}`,
		why: detail,
		todo: todo(operation),
		href: operationPath(id),
		since: updated_at,
		actions: operationActions(operation),
	};
}

/** @type {HostNeed[]} */
const HOSTS = [
	{
		kind: 'lapsed',
		told: 'FENCED, but its proof has ended',
		why: 'It has shown a sign of life since its fence, and is silent again. Its evacuate gate is closed.',
		todo: 'Fence it again: that is quick for a host that is off.',
		label: 'Fence',
		act: fence,
	},
	{
		kind: 'silent',
		told: 'UNREACHABLE, and no fence begins by itself',
		why: 'Its segment fences only if asked, so its workloads stay where they are.',
		todo: 'Look whether it is dead or only not seen. If it is dead, fence it.',
		label: 'Fence',
		act: fence,
	},
	{
		kind: 'back',
		told: 'FENCED, and UP again',
		why: 'It answers, but gets no workloads while it is FENCED.',
		todo: 'Look why it was fenced. If that is mended, rejoin it.',
		label: 'Rejoin',
		act: rejoin,
	},
];

/** @param {HostNeed} need */
function hostNeeds(need) {
	const segments = new Map(site.segments.map(segment => [segment.name, segment]));
	const hosts = [...site.hosts.values()].filter(host => {
		const { is_automatic, is_suspended } = segments.get(host.segment) ?? {};
		const begins = is_automatic || is_suspended || host.marks?.includes('suspended');
		return kindOf(host) === need.kind && !(need.kind === 'silent' && begins);
	});
	if (hosts.length > SINGLY) return [hostNeed(need, count(hosts.length, 'host'), hosts)];
	return hosts.map(host => hostNeed(need, host.name, [host]));
}

/** @param {HostNeed} need @param {string} what @param {SiteHost[]} hosts @returns {Need} */
function hostNeed({ kind, told, why, todo, label, act }, what, hosts) {
	const all = hosts.map(({ name }) => name);
	const isOne = hosts.length === 1;
	return {
		key: `${kind} ${isOne ? what : ''}`,
		kind,
		title: `${what}: ${told}`,
		why: isOne ? why : `${names(all)}. ${why}`,
		todo,
		href: isOne ? hostPath(what) : `/dashboard/${KINDS[kind].list}`,
		since: hosts.map(({ failure_since }) => failure_since ?? '').sort()[0] || undefined,
		actions: [{ label, isMain: true, run: () => withHosts(all, act) }],
	};
}

/** @param {Api.Method} method @returns {Need[]} */
function device({ id, name, checks }) {
	if (!checks?.failing) return [];
	return [
		{
			key: id,
			kind: 'unknown',
			title: `${name}: ${checks.failing} of ${count(checks.targets, 'device')} not good`,
			why: `The worst answer: ${checks.outcome?.replace('_', ' ')}. A fence that needs this method would fail.`,
			todo: 'Look at the answers, then at the device, its address and its credentials.',
			href: `/dashboard/methods/${encodeURIComponent(name)}?failing=true`,
			since: checks.failing_since ?? undefined,
			actions: [],
		},
	];
}

/** @param {Api.Subscription} subscription @returns {Need[]} */
function subscription({ id, name, disabled_reason, retrying }) {
	if (!disabled_reason && retrying === 0) return [];
	return [
		{
			key: id,
			kind: 'unknown',
			title: disabled_reason ? `${name}: disabled` : `${name}: ${count(retrying, 'event')} not delivered yet`,
			why: disabled_reason ?? 'The receiver does not take them. They are tried again.',
			todo: 'Look at the deliveries, then at the receiver.',
			href: `/dashboard/subscriptions/${encodeURIComponent(name)}`,
			actions: [],
		},
	];
}
