/** Asking before acting. What is dangerous is not sent by Enter; what cannot be undone has to be typed. */

import { why } from './api.js';
import { Changed } from './bound.js';
import { html, morph } from './dom.js';
import { failed } from './parts.js';
import { sign } from './shapes.js';

const FREELY = 3;
const AT_ONCE = 4;
const REASON_CHARS = 255;

/** @template T @param {Asking<T>} asking */
export function ask(asking) {
	const { targets, isDangerous, isPlain, verb } = asking;
	const typed = asking.typed ?? (targets.length > FREELY ? String(targets.length) : undefined);
	const control = new AbortController();
	/** @type {T[]} */
	const done = [];
	let can = !asking.prepare;
	const place = html`<div></div>`;
	const results = html`<ul class="results" aria-live="polite"></ul>`;
	const submit = /** @type {HTMLButtonElement} */ (
		html`<button type=${isDangerous ? 'button' : 'submit'} class=${isDangerous ? 'danger' : 'primary'}>${verb}</button>`
	);
	const close = html`<button type="button" @click=${() => dialog.close()}>Close</button>`;
	const leave = (/** @type {Event} */ { target }) => {
		if (target instanceof HTMLAnchorElement) dialog.close();
	};
	const form = /** @type {HTMLFormElement} */ (
		html`<form>
    <h2 id="asked">${asking.title}</h2>
    <div>${asking.about}</div>
    ${place}
    <fieldset>
      ${(asking.fields ?? []).map(field)}
      ${!isPlain && html`<label>Reason (goes on record)<input name="reason" required maxlength=${REASON_CHARS} autocomplete="off"></label>`}
      ${typed && typing(typed, !asking.typed)}
    </fieldset>
    ${results}
    <p class="buttons">${submit}${close}</p>
  </form>`
	);
	const dialog = /** @type {HTMLDialogElement} */ (
		html`<dialog aria-labelledby="asked" @click=${leave}>${form}</dialog>`
	);
	const check = () => {
		const values = read(form);
		submit.disabled =
			!can || !(isPlain || values.reason?.trim()) || (typed !== undefined && values.typed?.trim() !== typed);
	};
	const run = async () => {
		const values = read(form);
		form.querySelector('fieldset')?.setAttribute('disabled', '');
		submit.remove();
		await actOnAll(asking, values, results, done);
		close.focus();
	};
	form.oninput = check;
	form.onsubmit = event => {
		event.preventDefault();
		if (!isDangerous && !submit.disabled && submit.isConnected) run();
	};
	if (isDangerous) submit.onclick = run;
	dialog.onclose = () => {
		control.abort();
		dialog.remove();
		if (done.length > 0) asking.after?.();
		const head = /** @type {HTMLElement | null} */ (document.querySelector('h1'));
		if (document.activeElement === document.body) head?.focus();
	};
	document.body.append(dialog);
	dialog.showModal();
	check();
	/** @type {HTMLElement | null} */ (form.querySelector('[name=reason], [name=host]'))?.focus({
		preventScroll: true,
	});
	prepare(asking, place, control.signal).then(answer => {
		can ||= answer;
		check();
	});
}

/** @template T @param {Asking<T>} asking @param {HTMLElement} place @param {AbortSignal} signal */
async function prepare(asking, place, signal) {
	try {
		return (await asking.prepare?.(place, signal)) ?? false;
	} catch (error) {
		if (!signal.aborted) morph(place, failed(error));
		return false;
	}
}

/** @template T @param {Asking<T>} asking @param {Values} values @param {HTMLElement} results @param {T[]} done */
async function actOnAll(asking, values, results, done) {
	const waiting = [...asking.targets];
	const one = async () => {
		for (let target = waiting.shift(); target !== undefined; target = waiting.shift()) {
			const place = html`<li>${sign('running', `${asking.name(target)} ...`)}</li>`;
			results.append(place);
			try {
				morph(place, sign('confirmed', await asking.act(target, values)));
				done.push(target);
			} catch (error) {
				const told = error instanceof Changed ? why(error) : `${asking.name(target)}: ${why(error)}`;
				morph(place, sign('failed', told), error instanceof Changed && lookAgain(asking, results));
			}
		}
	};
	await Promise.all(Array.from({ length: AT_ONCE }, one));
	const all = asking.targets.length;
	if (all > 1) results.prepend(html`<li><b>${done.length} of ${all} accepted.</b></li>`);
}

/** @template T @param {Asking<T>} asking @param {HTMLElement} results */
function lookAgain({ again }, results) {
	const look = () => {
		results.closest('dialog')?.close();
		again?.();
	};
	return again && html`<button type="button" @click=${look}>Look again</button>`;
}

/** @param {string} typed @param {boolean} isNumber */
const typing = (typed, isNumber) =>
	html`<label><span>Type ${isNumber && 'the number of targets, '}<b>${typed}</b>${!isNumber && ' to confirm'}</span>
    <input name="typed" autocomplete="off" autocapitalize="off" spellcheck="false"></label>`;

/** @param {Field} field */
function field({ name, label, kind = 'text', choices = [] }) {
	if (kind === 'check')
		return html`<label class="tick"><input type="checkbox" name=${name} value="yes">${label}</label>`;
	if (kind === 'text') return html`<label>${label}<input name=${name} autocomplete="off"></label>`;
	const options = choices.map(([value, text]) => html`<option value=${value}>${text}</option>`);
	return html`<label>${label}<select name=${name}>${options}</select></label>`;
}

/** @param {HTMLFormElement} form @returns {Values} */
export const read = form =>
	Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value)]));

/** @param {string} message */
export function toast(message) {
	const shown = html`<p>${message}</p>`;
	document.querySelector('#toasts')?.append(shown);
	setTimeout(() => shown.remove(), 8000);
}
