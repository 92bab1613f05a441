/** Actions bound to what decides: it is compared with a fresh reading, and sent with that reading's entity tag. */

import { Fault, get, send } from './api.js';

/** It has changed since it was looked at; nothing was done. */
export class Changed extends Error {}

/** @param {Api.Host} host */
const hostFacts = ({ failure_state, fencing_state, generation, proof_ended, operation }) => ({
	'failure state': failure_state,
	'fencing state': fencing_state,
	generation,
	proof: proof_ended ? 'ended' : 'not ended',
	operation: operation ? `${operation.kind} ${operation.status} ${operation.id.slice(0, 8)}` : 'none',
});

/** @param {Api.Operation} operation */
const operationFacts = ({ status, generation, round }) => ({
	status,
	generation,
	'times started again': round,
});

/**
 * @template T
 * @param {string} path of what is read and compared @param {string} name @param {T} seen
 * @param {(it: T) => Record<string, unknown>} facts what decides
 * @param {(etag: string | null) => Promise<Answer<any>>} act
 */
async function bound(path, name, seen, facts, act) {
	for (let round = 1; ; round++) {
		const { body, etag } = await get(path);
		const now = facts(body);
		const changes = Object.entries(facts(seen)).filter(([fact, value]) => now[fact] !== value);
		const told = changes.map(([fact, value]) => `${fact} was ${value}, is ${now[fact]}`).join('; ');
		if (told)
			throw new Changed(`${name} has changed meanwhile: ${told}. Nothing was done. Look again, then decide.`);
		try {
			return await act(etag);
		} catch (fault) {
			// A report came between: what decides is compared once more.
			if (round === 2 || !(fault instanceof Fault) || fault.status !== 412) throw fault;
		}
	}
}

/** @param {Api.Host} seen @param {string} what such as `fence` @param {Record<string, unknown>} body */
export function onHost(seen, what, body) {
	const [path, key] = [`/hosts/${seen.id}`, crypto.randomUUID()];
	return bound(path, seen.name, seen, hostFacts, ifMatch =>
		send('POST', `${path}/${what}`, body, { ifMatch, key }),
	);
}

/** @param {Api.Operation} seen @param {'cancel' | 'retry'} what @param {string} reason */
export function onOperation(seen, what, reason) {
	const [path, key] = [`/operations/${seen.id}`, crypto.randomUUID()];
	const act = (/** @type {string | null} */ ifMatch) =>
		send('POST', `${path}/${what}`, { reason }, { ifMatch, key });
	return bound(path, `The ${seen.kind} of ${seen.host}`, seen, operationFacts, act);
}
