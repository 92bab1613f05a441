/** Times: `<rf-time at as>` shows one in local time or UTC, or its age (`ago`, `run`). The clock is the server's. */

import { html } from './dom.js';

const CHOICE = 'ringfence.clock';
/** Milliseconds by which the server's clock is ahead of this machine's. */
let ahead = 0;

export const now = () => Date.now() + ahead;

/** @param {string | null} date the header */
export function heard(date) {
	const off = Date.parse(date ?? '') - Date.now();
	// The header counts whole seconds: less than two are no difference between clocks.
	if (!Number.isNaN(off)) ahead = Math.abs(off) < 2000 ? 0 : off;
}

export const isUtc = () => localStorage.getItem(CHOICE) === 'utc';

/** @param {boolean} utc */
export function showUtc(utc) {
	localStorage.setItem(CHOICE, utc ? 'utc' : 'local');
	for (const each of shown) each.draw();
}

/** `2026-11-29 03:12:05`, in UTC with a `Z`. @param {string | number} at */
export function clock(at) {
	const t = new Date(at);
	if (isUtc()) return `${t.toISOString().slice(0, 19).replace('T', ' ')}Z`;
	const local = new Date(t.getTime() - t.getTimezoneOffset() * 60_000);
	return local.toISOString().slice(0, 19).replace('T', ' ');
}

/** `8.4 s`, `3 min 05 s`, `2 h 10 min`, `3 d 4 h`. @param {number} ms */
export function span(ms) {
	const s = Math.max(0, ms) / 1000;
	const two = (/** @type {number} */ n) => String(Math.floor(n)).padStart(2, '0');
	if (s < 0.1) return `${Math.round(ms)} ms`;
	if (s < 10) return `${s.toFixed(1)} s`;
	if (s < 60) return `${Math.floor(s)} s`;
	if (s < 3600) return `${Math.floor(s / 60)} min ${two(s % 60)} s`;
	if (s < 86_400) return `${Math.floor(s / 3600)} h ${two((s % 3600) / 60)} min`;
	return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`;
}

/** `12 s`, `5 min`, `3 h`, `2 d`. @param {number} ms */
function brief(ms) {
	const s = Math.max(0, ms) / 1000;
	const [n, unit] =
		s < 60 ? [s, 's'] : s < 3600 ? [s / 60, 'min'] : s < 86_400 ? [s / 3600, 'h'] : [s / 86_400, 'd'];
	return `${Math.floor(n)} ${unit}`;
}

/** `12 s ago`, or `in 12 s`. @param {string} at */
export function ago(at) {
	const ms = now() - Date.parse(at);
	return ms < -999 ? `in ${brief(-ms)}` : ms < 1000 ? 'now' : `${brief(ms)} ago`;
}

/** @type {Set<Time>} */
const shown = new Set();

class Time extends HTMLElement {
	static observedAttributes = ['at', 'as'];

	connectedCallback() {
		shown.add(this);
		this.draw();
	}

	disconnectedCallback() {
		shown.delete(this);
	}

	attributeChangedCallback() {
		if (this.isConnected) this.draw();
	}

	draw() {
		const at = this.getAttribute('at') ?? '';
		const as = this.getAttribute('as');
		const full = clock(at);
		const text = as === 'ago' ? ago(at) : as === 'run' ? brief(now() - Date.parse(at)) : full;
		if (this.firstChild?.nodeValue !== text) this.replaceChildren(text);
		if (as && this.getAttribute('title') !== full) this.setAttribute('title', full);
	}
}
customElements.define('rf-time', Time);

setInterval(() => {
	if (!document.hidden) for (const each of shown) if (each.hasAttribute('as')) each.draw();
}, 1000);

/** A time; `-` where there is none. @param {string | null | undefined} at @param {'ago' | 'run'} [as] */
export const time = (at, as) => (at ? html`<rf-time at=${at} as=${as}></rf-time>` : '-');
