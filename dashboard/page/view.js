/** What all views share: they listen and wait only as long as they are shown. */

import { isAborted } from './api.js';
import { morph } from './dom.js';
import { failed } from './parts.js';

export class View extends HTMLElement {
	gone = new AbortController();

	connectedCallback() {
		this.gone = new AbortController();
		this.start();
	}

	disconnectedCallback() {
		this.gone.abort();
	}

	start() {}

	/** @param {EventTarget} target @param {string} type @param {(event: CustomEvent) => void} listener */
	on(target, type, listener) {
		const { signal } = this.gone;
		target.addEventListener(type, event => listener(/** @type {CustomEvent} */ (event)), { signal });
	}

	/** @param {number} ms @param {() => void} act */
	every(ms, act) {
		const timer = setInterval(() => document.hidden || act(), ms);
		this.gone.signal.addEventListener('abort', () => clearInterval(timer));
	}

	/** @param {() => Promise<void>} read */
	async attempt(read) {
		try {
			if (!this.gone.signal.aborted) await read();
		} catch (error) {
			if (!isAborted(error) && !this.gone.signal.aborted) this.fail(error);
		}
	}

	/** @param {unknown} error */
	fail(error) {
		morph(this, this.querySelector('.head'), failed(error));
	}
}

/** Runs `act` at most once in `ms`, and once more if it was asked for meanwhile. @param {number} ms @param {() => unknown} act */
export function spaced(ms, act) {
	let [isWaiting, isAsked] = [false, false];
	const run = async () => {
		[isWaiting, isAsked] = [true, false];
		await act();
		setTimeout(() => {
			isWaiting = false;
			if (isAsked) run();
		}, ms);
	};
	return () => {
		if (isWaiting) isAsked = true;
		else run();
	};
}
