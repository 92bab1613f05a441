/** The calls of the API. A refusal is thrown as a `Fault`. The session is a cookie that no script sees. */

import { heard } from './time.js';

const PATIENCE_MS = 30_000;

/** What the API refused, or that it did not answer (status 0). */
export class Fault extends Error {
	/** @param {number} status @param {string} code such as fencing.host.up @param {string} title @param {string} detail */
	constructor(status, code, title, detail) {
		super(detail || title);
		Object.assign(this, { name: 'Fault' });
		this.status = status;
		this.code = code;
		this.title = title;
	}
}

/** Tells `signed-out` when a call was refused for want of a session. */
export const calls = new EventTarget();

/** @param {string} path with its query @param {Sent} [options] */
export const get = (path, options) => send('GET', path, undefined, options);

/** @param {string} path @param {AbortSignal} [signal] @returns {Promise<any>} */
export const read = async (path, signal) => (await get(path, { signal })).body;

/** What is there, or null if it is not (404) or not for this role (403). @param {string} path @param {AbortSignal} [signal] */
export const readIfAny = (path, signal) =>
	read(path, signal).catch(fault => {
		if (fault instanceof Fault && [403, 404].includes(fault.status)) return null;
		throw fault;
	});

/** @param {string} method @param {string} path @param {unknown} [body] @param {Sent} [options] @returns {Promise<Answer<any>>} */
export async function send(method, path, body, options = {}) {
	/** @type {Record<string, string>} */
	const headers = { Accept: 'application/json' };
	if (body !== undefined) headers['Content-Type'] = 'application/json';
	if (options.ifMatch) headers['If-Match'] = options.ifMatch;
	if (method === 'POST' && path !== '/sessions')
		headers['Idempotency-Key'] = options.key ?? crypto.randomUUID();
	const patience = AbortSignal.timeout(PATIENCE_MS);
	const signal = options.signal ? AbortSignal.any([options.signal, patience]) : patience;
	const text = body === undefined ? undefined : JSON.stringify(body);
	const response = await fetch(path, { method, headers, body: text, signal, cache: 'no-store' }).catch(away);
	heard(response.headers.get('Date'));
	if (!response.ok) throw await refused(response, path);
	const etag = response.headers.get('ETag');
	const location = response.headers.get('Location');
	return { body: response.status === 204 ? null : await response.json(), etag, location };
}

/** @param {unknown} error @returns {never} */
function away(error) {
	if (error instanceof DOMException && error.name === 'AbortError') throw error;
	throw new Fault(
		0,
		'away',
		'No answer',
		'Ringfence does not answer. Look at its service and at the network.',
	);
}

/** @param {Response} response @param {string} path */
export async function refused(response, path) {
	const body = await response.json().catch(() => null);
	const error = body?.errors?.[0];
	if (response.status === 401 && path !== '/sessions') calls.dispatchEvent(new Event('signed-out'));
	const title = error?.title ?? `HTTP ${response.status}`;
	return new Fault(response.status, error?.code ?? '', title, error?.detail ?? response.statusText);
}

/** @param {unknown} error */
export const why = error => (error instanceof Error ? error.message : String(error));

/** @param {unknown} error */
export const isAborted = error => error instanceof DOMException && error.name === 'AbortError';
