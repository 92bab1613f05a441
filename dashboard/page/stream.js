/**
 * The event stream. It resumes from the last number that it has seen and closes while the tab is hidden.
 *
 * Dispatches `event`, `state` when `lateSince` has changed, and `gone` when events that were not seen have been removed.
 */

import { refused } from './api.js';
import { now } from './time.js';

/** The server sends something every 15 s. */
const SILENCE_MS = 40_000;
const PAUSES_MS = [500, 1000, 2000, 5000, 10_000];

export class Stream extends EventTarget {
	last = 0;
	/** Since when the stream has been broken; null while it is not. @type {number | null} */
	lateSince = null;
	/** @type {AbortController | null} */
	#open = null;
	#isWanted = false;
	#failures = 0;

	constructor() {
		super();
		document.addEventListener('visibilitychange', () => this.#turn());
		addEventListener('online', () => this.#turn(true));
	}

	/** @param {number} after the number of the last event that is known */
	start(after) {
		this.last = after;
		this.#isWanted = true;
		this.#turn(true);
	}

	stop() {
		this.#isWanted = false;
		this.#turn();
		this.#late(null);
	}

	/** @param {boolean} [anew] */
	#turn(anew = false) {
		const wanted = this.#isWanted && !document.hidden;
		if (this.#open && (!wanted || anew)) {
			this.#open.abort();
			this.#open = null;
		}
		if (wanted && !this.#open) {
			this.#open = new AbortController();
			this.#run(this.#open);
		}
	}

	/** @param {AbortController} control */
	async #run(control) {
		while (!control.signal.aborted) {
			try {
				await this.#listen(control.signal);
			} catch (error) {
				if (control.signal.aborted) return;
				if (/** @type {{status?: number}} */ (error).status === 410) return this.#gone();
			}
			if (control.signal.aborted) return;
			this.#late(this.lateSince ?? now());
			const pause = PAUSES_MS[Math.min(this.#failures++, PAUSES_MS.length - 1)] ?? 0;
			await new Promise(done => setTimeout(done, pause));
		}
	}

	/** @param {AbortSignal} signal */
	async #listen(signal) {
		const broken = new AbortController();
		const give = () => broken.abort();
		let watch = setTimeout(give, SILENCE_MS);
		signal.addEventListener('abort', give, { once: true });
		try {
			const path = `/events/stream?after=${this.last}`;
			const headers = { Accept: 'text/event-stream' };
			const response = await fetch(path, { headers, signal: broken.signal, cache: 'no-store' });
			if (!response.ok || !response.body) throw await refused(response, path);
			this.#failures = 0;
			this.#late(null);
			let rest = '';
			const decoder = new TextDecoder();
			const reader = response.body.getReader();
			for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
				clearTimeout(watch);
				watch = setTimeout(give, SILENCE_MS);
				const blocks = (rest + decoder.decode(piece.value, { stream: true })).split('\n\n');
				rest = blocks.pop() ?? '';
				for (const block of blocks) this.#take(block);
			}
		} finally {
			clearTimeout(watch);
			signal.removeEventListener('abort', give);
		}
	}

	/** @param {string} block */
	#take(block) {
		let [type, data] = ['', ''];
		for (const line of block.split('\n')) {
			if (line.startsWith('event: ')) type = line.slice(7);
			else if (line.startsWith('data: ')) data += line.slice(6);
		}
		if (type === 'events.gone') this.#gone();
		if (!data || type === 'events.gone') return;
		/** @type {Api.Event} */
		const event = JSON.parse(data);
		if (event.sequence <= this.last) return;
		this.last = event.sequence;
		this.dispatchEvent(new CustomEvent('event', { detail: event }));
	}

	#gone() {
		this.stop();
		this.dispatchEvent(new Event('gone'));
	}

	/** @param {number | null} since */
	#late(since) {
		if (this.lateSince === since) return;
		this.lateSince = since;
		this.dispatchEvent(new Event('state'));
	}
}
