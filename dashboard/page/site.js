/**
 * All hosts, kept up to date by the event stream. A host of which an event does not say everything is read again.
 *
 * Dispatches `fresh` (everything was read), `hosts` (those that changed), `event` and `state` (of the stream).
 */

import { read } from './api.js';
import { Stream } from './stream.js';
import { spaced } from './view.js';

const SINGLY = 12;
const LOOK_MS = 400;
const WHOLE_MS = 5000;

/** @type {Record<string, Api.Status>} */
const STATUS = {
	'operation.started': 'running',
	'operation.released': 'running',
	'operation.restarted': 'running',
	'operation.held': 'held',
	'operation.needs_operator': 'needs_operator',
};
/** @type {Record<string, [mark: string, on: boolean]>} */
const MARKS = {
	'host.suspended': ['suspended', true],
	'host.resumed': ['suspended', false],
	'host.quarantined': ['quarantined', true],
	'host.quarantine_ended': ['quarantined', false],
	'host.alarm_began': ['alarmed', true],
	'host.kdump_began': ['kdump', true],
	'host.kdump_ended': ['kdump', false],
};

class Site extends EventTarget {
	/** @type {Map<string, SiteHost>} */
	hosts = new Map();
	/** @type {SiteSegment[]} */
	segments = [];
	isRead = false;
	stream = new Stream();
	/** @type {Set<string>} */
	#changed = new Set();
	/** @type {Set<string>} */
	#unsure = new Set();
	#read = spaced(WHOLE_MS, () => this.read().catch(() => undefined));
	#look = spaced(LOOK_MS, () => this.#tell());

	constructor() {
		super();
		this.stream.addEventListener('event', event =>
			this.#take(/** @type {CustomEvent<Api.Event>} */ (event).detail),
		);
		this.stream.addEventListener('state', () => this.dispatchEvent(new Event('state')));
		this.stream.addEventListener('gone', this.#read);
	}

	async read() {
		/** @type {Api.Overview} */
		const { sequence, segments } = await read('/overview');
		this.segments = segments.map(({ hosts: _, ...segment }) => segment);
		this.hosts = new Map(
			segments.flatMap(s => s.hosts.map(host => [host.name, { ...host, segment: s.name }])),
		);
		this.isRead = true;
		this.#unsure.clear();
		this.#changed.clear();
		this.stream.start(sequence);
		this.dispatchEvent(new Event('fresh'));
	}

	/** Forgets everything: another person may sign in. */
	stop() {
		this.stream.stop();
		this.hosts.clear();
		this.segments = [];
		this.isRead = false;
	}

	/** @param {Api.Event} event */
	#take(event) {
		this.dispatchEvent(new CustomEvent('event', { detail: event }));
		const host = this.hosts.get(event.host ?? '');
		if (event.type === 'host.created' || event.type === 'host.deleted' || !host) {
			if (event.host) this.#read();
			return;
		}
		if (!apply(host, event)) this.#unsure.add(host.name);
		this.#changed.add(host.name);
		this.#look();
	}

	async #tell() {
		const unsure = [...this.#unsure];
		this.#unsure.clear();
		if (unsure.length > SINGLY) this.#read();
		else await Promise.all(unsure.map(name => this.#again(name).catch(() => undefined)));
		const changed = [...this.#changed].flatMap(name => this.hosts.get(name) ?? []);
		this.#changed.clear();
		this.dispatchEvent(new CustomEvent('hosts', { detail: changed }));
	}

	/** @param {string} name */
	async #again(name) {
		/** @type {Api.Host} */
		const fresh = await read(`/hosts/${encodeURIComponent(name)}`);
		const host = this.hosts.get(name);
		if (host?.segment !== fresh.segment) return this.#read();
		Object.assign(host, compact(fresh));
	}
}

/** Applies what the event says; whether that is all there is to know. @param {SiteHost} host @param {Api.Event} event */
function apply(host, event) {
	const { type, data } = event;
	const status = STATUS[type];
	const given = MARKS[type];
	if (status) {
		if (host.operation?.id !== data.operation_id && !data.kind) return false;
		const kind = data.kind ?? host.operation?.kind;
		host.operation = { id: data.operation_id, kind, status };
	} else if (type === 'operation.succeeded' || type === 'operation.cancelled') {
		if (host.operation?.id === data.operation_id) host.operation = null;
	} else if (given) {
		const others = (host.marks ?? []).filter(each => each !== given[0]);
		host.marks = given[1] ? [...others, given[0]] : others;
		// A suspension of its segment may hold a host beside its own.
		return type !== 'host.resumed';
	} else if (type === 'host.fenced' || type === 'host.unfenced') {
		host.fencing_state = type === 'host.fenced' ? 'FENCED' : 'UNFENCED';
		host.marks = (host.marks ?? []).filter(each => each !== 'proof_ended');
	} else if (type === 'host.failure_state') {
		host.failure_state = data.to;
		host.failure_since = event.occurred_at;
		// A sign of life ends proofs.
		return host.fencing_state === 'UNFENCED';
	} else return type === 'operation.proof' || type === 'host.condition';
	return true;
}

/** @param {Api.Host} host @returns {Partial<SiteHost>} */
function compact(host) {
	const marks = [
		host.suspension && 'suspended',
		host.quarantined_at && 'quarantined',
		host.proof_ended && 'proof_ended',
		host.alarms?.length && 'alarmed',
		host.kdump && !host.kdump.is_over && 'kdump',
	];
	const { failure_state, failure_since, fencing_state, operation } = host;
	return {
		failure_state,
		failure_since,
		fencing_state,
		operation,
		marks: marks.filter(m => typeof m === 'string'),
	};
}

export const site = new Site();
