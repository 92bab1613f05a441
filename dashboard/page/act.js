/** What a person may do. Each action asks before, and is bound to what was seen. */

import { read, send, why } from './api.js';
import { onHost, onOperation } from './bound.js';
import { ask } from './dialog.js';
import { html, morph } from './dom.js';
import { link } from './parts.js';
import { drawFence } from './plan.js';
import { operationPath } from './router.js';
import { may } from './session.js';
import { count, names } from './words.js';

/** @param {readonly { name: string }[]} targets @param {string} one */
const whom = (targets, one) => (targets.length === 1 ? (targets[0]?.name ?? '') : count(targets.length, one));

/** @param {readonly { name: string }[]} targets */
const listed = targets =>
	targets.length > 1 &&
	html`<p class="quiet">${names(
		targets.map(({ name }) => name),
		12,
	)}</p>`;

/** @param {readonly string[]} hosts @param {(hosts: Api.Host[]) => void} asks */
export const withHosts = async (hosts, asks) =>
	asks(await Promise.all(hosts.map(name => read(`/hosts/${encodeURIComponent(name)}`))));

/**
 * @param {HostAsk} asks itself, to look again
 * @param {string} verb @param {readonly Api.Host[]} hosts @param {After | undefined} after
 * @param {Partial<Asking<Api.Host>> & Pick<Asking<Api.Host>, 'about' | 'act'>} more
 */
function askHosts(asks, verb, hosts, after, more) {
	const title = `${verb} ${whom(hosts, 'host')}`;
	const again = () =>
		withHosts(
			hosts.map(({ name }) => name),
			fresh => asks(fresh, after),
		);
	ask({
		title,
		verb: title,
		targets: hosts,
		name: ({ name }) => name,
		again,
		after,
		...more,
		about: [more.about, listed(hosts)],
	});
}

/** @param {Api.Operation} operation @param {Api.Host} host */
const began = ({ id, kind }, { name }) => link(operationPath(id), `${name}: its ${kind} began. Watch it.`);

/** @type {HostAsk} */
export const fence = (hosts, after) => {
	const [one] = hosts;
	askHosts(fence, 'Fence', hosts, after, {
		isDangerous: true,
		about: html`<p>Stops the host by power, storage and network, as its plan says, and proves it. What runs on it is lost.</p>`,
		prepare: (place, signal) =>
			hosts.length === 1 && one ? dryRun(one, place, signal) : dryRuns(hosts, place, signal),
		act: async (host, { reason }) => {
			const { body } = await onHost(host, 'fence', { reason });
			return body.kind ? began(body, host) : `${host.name} is FENCED already.`;
		},
	});
};

/** @param {Api.Host} host @param {AbortSignal} signal @returns {Promise<Api.Explanation>} */
const explained = async ({ id }, signal) =>
	(await send('POST', `/hosts/${id}/fence`, { reason: 'dry run', dry_run: true }, { signal })).body;

/** @param {Api.Host} host @param {HTMLElement} place @param {AbortSignal} signal */
async function dryRun(host, place, signal) {
	morph(place, html`<p class="quiet loading">Dry run</p>`);
	const explanation = await explained(host, signal);
	morph(place, drawFence(explanation));
	return explanation.fence.verdict.outcome !== 'refused';
}

/** @param {readonly Api.Host[]} hosts @param {HTMLElement} place @param {AbortSignal} signal */
async function dryRuns(hosts, place, signal) {
	/** @type {Map<string, string[]>} */
	const verdicts = new Map();
	for (const [i, host] of hosts.entries()) {
		morph(place, html`<p class="quiet loading">Dry run ${i + 1} of ${hosts.length}</p>`);
		const said = await explained(host, signal).then(
			({ fence: { verdict } }) => verdict.title ?? verdict.outcome.replace('_', ' '),
			why,
		);
		signal.throwIfAborted();
		verdicts.set(said, [...(verdicts.get(said) ?? []), host.name]);
	}
	const told = [...verdicts].map(([said, of]) => html`<li><b>${said}</b>: ${names(of, 8)}</li>`);
	morph(place, html`<p>The dry run says:</p>`, html`<ul>${told}</ul>`);
	return true;
}

/** @type {HostAsk} */
export const confirm = (hosts, after) => {
	const [host] = hosts;
	if (!host) return;
	const isUp = host.failure_state === 'UP';
	askHosts(confirm, 'Confirm', [host], after, {
		title: `Confirm by hand that ${host.name} is off`,
		verb: 'It is off, and stays off',
		isDangerous: true,
		typed: host.name,
		about: [
			html`<p class="warn">Your word is a proof. After it the host is FENCED, and its workloads may be started elsewhere. If it still
        runs or writes, their data is destroyed.</p>`,
			html`<p>Confirm only what you have made certain yourself: its plugs are pulled, or you have seen it off, and it stays so.</p>`,
			html`<p class="quiet">It is seen ${host.failure_state}. Your word counts for generation ${host.generation}.</p>`,
		],
		fields: isUp ? [{ name: 'override', label: 'It is off although it is seen UP', kind: 'check' }] : [],
		act: async (seen, { reason, override }) => {
			const body = { generation: seen.generation, reason, ...(override && { override_up: true }) };
			const { body: now } = await onHost(seen, 'confirm-fenced', body);
			const isOver = now.fencing_state === 'FENCED';
			return `${seen.name}${isOver ? ' is FENCED.' : ': your word is on record. FENCED follows when it has settled.'}`;
		},
	});
};

/** @type {HostAsk} */
export const rejoin = (hosts, after) => {
	const needsBoot = hosts.some(host => host.needs_boot);
	askHosts(rejoin, 'Rejoin', hosts, after, {
		about: [
			html`<p>Takes it back: power on, seen UP, storage and network released, then UNFENCED. The evacuate gate closes at once.</p>`,
			needsBoot &&
				html`<p class="quiet">A boot newer than the fence has to be seen before storage and network are released.</p>`,
		],
		fields: needsBoot
			? [{ name: 'booted', label: 'I know that it was booted anew since the fence', kind: 'check' }]
			: [],
		act: async (host, { reason, booted }) => {
			const { body } = await onHost(host, 'rejoin', {
				reason,
				...(booted && { boot_confirmed: true }),
			});
			return body.kind ? began(body, host) : `${host.name} is UNFENCED already.`;
		},
	});
};

/** @type {HostAsk} */
export const evacuate = (hosts, after) => {
	askHosts(evacuate, 'Evacuate', hosts, after, {
		isDangerous: true,
		about: html`<p>Starts its workloads on other hosts. Its evacuate gate has to be open.</p>`,
		act: async (host, { reason }) => {
			const { body } = await onHost(host, 'evacuate', { reason });
			return began(body, host);
		},
	});
};

/** @param {'host' | 'segment'} what @returns {(it: { id: string, name: string }) => Suspendable} */
const suspendable =
	what =>
	({ id, name }) => ({ name, path: `/${what}s/${id}/suspension`, what });
export const suspendableHost = suspendable('host');
export const suspendableSegment = suspendable('segment');
/** @type {Suspendable} */
export const everything = { name: 'everything', path: '/suspension', what: 'thing' };

const TERMS = Object.entries({
	1800: '30 minutes',
	7200: '2 hours',
	28800: '8 hours',
	86400: '1 day',
	604800: '7 days',
	2592000: '30 days',
});

/** @param {string} verb @param {string} about @param {Field[]} fields @param {(target: Suspendable, values: Values) => Promise<string>} act @returns {PauseAsk} */
const pausing = (verb, about, fields, act) => (targets, after) =>
	ask({
		title: `${verb} ${whom(targets, targets[0]?.what ?? '')}`,
		verb,
		targets,
		name: ({ name }) => name,
		about: html`<p>${about}</p>`,
		fields,
		act,
		after,
	});

export const suspend = pausing(
	'Suspend',
	'No fence, evacuation or rejoin begins by itself until the end. What is asked for is still done.',
	[{ name: 'for', label: 'For', kind: 'choice', choices: TERMS }],
	async ({ name, path }, values) => {
		await send('PUT', path, { for_s: Number(values.for), reason: values.reason });
		return `${name} is suspended.`;
	},
);

export const resume = pausing(
	'Resume',
	'Ends the suspension. Fences that it holds begin, and silent hosts are fenced as their segment says.',
	[],
	async ({ name, path }, { reason }) => {
		await send('DELETE', path, { reason });
		return `${name} is resumed.`;
	},
);

/** @param {Suspendable[]} targets @param {After} [after] @returns {Action[]} */
export const pauses = (targets, after) =>
	may('operator')
		? [
				{ label: 'Suspend', run: () => suspend(targets, after) },
				{ label: 'Resume', run: () => resume(targets, after) },
			]
		: [];

/** @param {Api.Operation} operation */
const ofHost = operation => operation.host ?? operation.id;

/** @param {'retry' | 'cancel'} what @param {string} verb @param {string} about @param {readonly Api.Operation[]} operations @param {After} [after] */
function askOperations(what, verb, about, operations, after) {
	const [one] = operations;
	const isOne = operations.length === 1;
	ask({
		title: `${verb}: ${isOne && one ? `${one.kind} of ${ofHost(one)}` : count(operations.length, 'operation')}`,
		verb: isOne ? `${verb} the ${one?.kind}` : `${verb} ${operations.length} operations`,
		targets: operations,
		name: ofHost,
		isDangerous: true,
		about: [html`<p>${about}</p>`, listed(operations.map(each => ({ name: ofHost(each) })))],
		act: async (operation, { reason = '' }) => {
			await onOperation(operation, what, reason);
			return `${ofHost(operation)}: its ${operation.kind} ${what === 'retry' ? 'goes on' : 'is cancelled'}.`;
		},
		after,
	});
}

/** @param {{ status: string, is_held_by_brake?: boolean }} operation */
const isHeld = operation => operation.status === 'held' || operation.is_held_by_brake === true;

/** @type {OperationAsk} */
export const retry = (operations, after) =>
	operations.every(isHeld)
		? askOperations(
				'retry',
				'Release',
				'It goes on now, whatever holds it. A fence stops its host.',
				operations,
				after,
			)
		: askOperations('retry', 'Retry', 'Repeats the tasks that were not confirmed.', operations, after);

/** @type {OperationAsk} */
export const cancel = (operations, after) =>
	askOperations(
		'cancel',
		'Cancel',
		'Stops what no worker has begun. What has been proven stays, and what was taken from the host stays until it is rejoined.',
		operations,
		after,
	);

/** @param {Api.Operation} operation @param {After} [after] @returns {Action[]} */
export function operationActions(operation, after) {
	const { host, kind, status } = operation;
	if (!may('service') || operation.finished_at) return [];
	const again = {
		label: isHeld(operation) ? 'Release' : 'Retry',
		isMain: true,
		run: () => retry([operation], after),
	};
	const word = { label: 'Confirm by hand', run: () => withHosts([host ?? ''], h => confirm(h, after)) };
	const stop = { label: 'Cancel', run: () => cancel([operation], after) };
	if (status === 'running') return [stop];
	return kind === 'fence' && host ? [again, word, stop] : [again, stop];
}

/** What may be done about a host; what is right now comes first. @param {Api.Host} host @param {After} [after] */
export function hostActions(host, after) {
	const live = host.operation;
	const isUp = host.failure_state === 'UP';
	const isFenced = host.fencing_state === 'FENCED';
	const holds = isFenced && !host.proof_ended;
	const isTaken = host.applied_fencing.length > 0;
	const waits = live?.status === 'needs_operator' || live?.status === 'held';
	const hosts = [host];
	const target = [suspendableHost(host)];
	const ofLive = (/** @type {OperationAsk} */ asks) => async () =>
		asks([await read(`/operations/${live?.id}`)], after);
	/** @type {[when: boolean | undefined, label: string, run: () => void, isMain?: boolean][]} */
	const all = [
		[waits, live && isHeld(live) ? 'Release' : 'Retry', ofLive(retry), true],
		[!holds && live?.kind !== 'fence', 'Fence', () => fence(hosts, after), !isUp && !live],
		[(isFenced || isTaken) && live?.kind !== 'fence', 'Rejoin', () => rejoin(hosts, after), isUp && !live],
		[holds && !isUp && !live && host.backend !== 'none', 'Evacuate', () => evacuate(hosts, after)],
		[!holds && (!isUp || may('admin')), 'Confirm by hand', () => confirm(hosts, after)],
		[Boolean(live), 'Cancel', ofLive(cancel)],
		[!host.suspension && may('operator'), 'Suspend', () => suspend(target, after)],
		[Boolean(host.suspension) && may('operator'), 'Resume', () => resume(target, after)],
	];
	return may('service')
		? all.filter(([when]) => when).map(([, label, run, isMain]) => ({ label, run, isMain }))
		: [];
}

/** @param {Api.Host[]} hosts @param {After} [after] @returns {Action[]} */
export function manyActions(hosts, after) {
	if (!may('service')) return [];
	return [
		{ label: 'Fence', run: () => fence(hosts, after) },
		{ label: 'Rejoin', run: () => rejoin(hosts, after) },
		{ label: 'Evacuate', run: () => evacuate(hosts, after) },
		...pauses(hosts.map(suspendableHost), after),
	];
}
