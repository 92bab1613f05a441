/** What the page says of events and operations. */

import { span } from './time.js';

/** @param {number} n @param {string} one @param {string} [more] */
export const count = (n, one, more = `${one}s`) => `${n.toLocaleString('en')} ${n === 1 ? one : more}`;

/** @param {string} text */
export const capital = text => text.slice(0, 1).toUpperCase() + text.slice(1);

/** `sim-1, sim-2 and 7 more`. @param {string[]} names @param {number} [most] */
export function names(names, most = 3) {
	const first = names.slice(0, most).join(', ');
	return names.length > most ? `${first} and ${names.length - most} more` : first;
}

/** @type {Record<string, (data: Record<string, any>) => string>} */
export const EVENTS = {
	'host.created': () => 'was added',
	'host.updated': () => 'was changed',
	'host.deleted': () => 'was removed',
	'host.failure_state': d => `is ${d.to}, was ${d.from} (${d.source ?? 'no source'})`,
	'host.fenced': d => `is FENCED, proven by ${proven(d.proofs)}`,
	'host.unfenced': () => 'is UNFENCED: taken back',
	'host.condition': d => `condition ${d.condition ?? d.name ?? ''} ${d.action ? `(${d.action})` : ''}`,
	'host.suspended': d => `is suspended: ${d.reason}`,
	'host.resumed': d => `is resumed: ${d.reason}`,
	'host.kdump_began': () => 'writes a crash dump',
	'host.kdump_ended': () => 'has ended its crash dump',
	'host.quarantined': d => `is in quarantine: fenced ${d.fences} times within ${span(d.within_s * 1000)}`,
	'host.quarantine_ended': () => 'is out of quarantine',
	'host.alarm_began': d => `alarm: ${d.problem} ${d.times ?? ''} times`,
	'host.alarm_ended': d => `alarm is over: ${d.problem}`,
	'host.left_off': () => 'stays off: a workload could not be moved',
	'operation.started': d => `${d.kind} began: ${d.reason}`,
	'operation.held': () => 'fence is held',
	'operation.released': () => 'goes on',
	'operation.proof': d => `proof: ${d.proof?.kind} by ${d.proof?.source}`,
	'operation.needs_operator': d => `${d.kind} needs a person: ${d.detail}`,
	'operation.restarted': () => 'starts again',
	'operation.succeeded': d => `${d.kind ?? 'operation'} succeeded`,
	'operation.cancelled': d => `${d.kind ?? 'operation'} was cancelled: ${d.detail ?? d.reason ?? ''}`,
	'workload.moving': d => `${d.workload?.name} is being started elsewhere`,
	'workload.moved': d => `${d.workload?.name} was moved`,
	'workload.not_moved': d => `${d.workload?.name} could not be moved: ${d.detail}`,
	'subscription.disabled': d => `subscription ${d.subscription} was disabled: ${d.reason}`,
};

/** @param {{ kind: string }[] | undefined} proofs */
const proven = proofs => (proofs ?? []).map(proof => proof.kind).join(', ') || 'its proofs';

/** @param {Api.Event} event */
export const told = event => EVENTS[event.type]?.(event.data ?? {}) ?? event.type;

/** @param {Api.Operation} operation */
export function todo(operation) {
	if (operation.restart_at) return 'It starts again by itself. Mend what failed, or retry it now.';
	if (operation.is_held_by_brake)
		return 'No worker has acted. Look whether the hosts are dead or only not seen: a switch, a broker, the network of the monitor. Then let the fences go on, or cancel them.';
	if (operation.kind === 'fence')
		return 'Mend the device and retry. Or make certain by hand that the host is off and stays off, then confirm it.';
	if (operation.kind === 'rejoin')
		return 'Mend what failed and retry. If the host is dead after all, fence it again.';
	return 'The workloads that are named could not be moved. Mend what failed and retry, or move them by hand and cancel.';
}

/** @param {Api.Operation} operation */
export function progress(operation) {
	const tasks = operation.stages.flatMap(stage => stage.tasks);
	const done = tasks.filter(task => !['pending', 'running'].includes(task.status)).length;
	return { done, all: tasks.length };
}

/** In milliseconds, without the waiting for a person at the end. @param {Api.Operation} operation @param {number} now */
export function timing({ status, created_at, updated_at, finished_at, stages }, now) {
	const from = Date.parse(created_at);
	const to = status === 'running' ? now : Date.parse(finished_at ?? updated_at);
	const attempts = stages.flatMap(({ tasks }) => tasks.flatMap(task => task.attempts));
	const at = (/** @type {string | null | undefined} */ time) => (time ? Date.parse(time) : to);
	const devices = union(attempts.filter(a => a.claimed_at).map(a => [at(a.claimed_at), at(a.ended_at)]));
	const waits = union(attempts.map(a => [at(a.started_at), at(a.claimed_at ?? a.ended_at)]));
	const whole = Math.max(0, to - from);
	return { from, to, whole, devices, waits, rest: Math.max(0, whole - devices - waits) };
}

/** @param {[from: number, to: number][]} spans */
function union(spans) {
	let [sum, end] = [0, 0];
	for (const [from, to] of spans.sort(([a], [b]) => a - b)) {
		sum += Math.max(0, to - Math.max(from, end));
		end = Math.max(end, to);
	}
	return sum;
}
