/** Signing in, the navigation, and which view an address shows. */

import { calls, Fault, isAborted, read, send, why } from './api.js';
import { toast } from './dialog.js';
import { html, morph } from './dom.js';
import { failed, link } from './parts.js';
import { go, hostPath, places } from './router.js';
import { may, session } from './session.js';
import { site } from './site.js';
import { isUtc, showUtc, time } from './time.js';
import { configured } from './views/configured.js';
import { hostView } from './views/host.js';
import { lists as first } from './views/lists.js';
import { operationView } from './views/operation.js';
import { overviewView } from './views/overview.js';
import { records } from './views/records.js';
import { signIn, signInView } from './views/sign-in.js';

/** @param {string} id */
const part = id => /** @type {HTMLElement} */ (document.querySelector(id));
const lists = { ...first, ...configured, ...records };
const [bar, notice, main] = [part('#bar'), part('#notice'), part('#main')];

/** @returns {[title: string, view: HTMLElement]} */
function viewOfAddress() {
	const [, , place = '', rest = ''] = location.pathname.split('/');
	const name = decodeURIComponent(rest);
	if (place === '') return ['Overview', overviewView()];
	if (place === 'hosts' && name) return [name, hostView(name)];
	if (place === 'operations' && name) return ['Operation', operationView(name)];
	const list = lists[place];
	if (list && !name) return [list.title, list.list()];
	if (list?.one) return [name, list.one(name)];
	return [
		'Not found',
		html`<div><h1 tabindex="-1">Not found</h1><p class="empty">There is nothing at this address. ${link('/dashboard', 'To the overview')}</p></div>`,
	];
}

function show() {
	const [title, view] = viewOfAddress();
	document.title = `${title} - Ringfence`;
	main.replaceChildren(view);
	navigation();
	scrollTo(0, 0);
	const head = /** @type {HTMLElement | null} */ (main.querySelector('h1'));
	(head ?? main).focus({ preventScroll: true });
}

function navigation() {
	const { current } = session;
	if (!current) return morph(bar, html`<b class="brand">Ringfence</b>`);
	const here = location.pathname.split('/')[2] ?? '';
	const entry = (/** @type {string} */ place, /** @type {string} */ title) =>
		html`<li><a href=${place ? `/dashboard/${place}` : '/dashboard'} aria-current=${place === here && 'page'}>${title}</a></li>`;
	const entries = Object.entries(lists).filter(
		([, { isForAdmins, isApart }]) => !isApart && (!isForAdmins || may('admin')),
	);
	morph(
		bar,
		html`<b class="brand">${link('/dashboard', 'Ringfence')}</b>`,
		html`<nav aria-label="Views"><ul>${entry('', 'Overview')}${entries.map(([place, { title }]) => entry(place, title))}</ul></nav>`,
		html`<form role="search" @submit=${find}><input name="host" aria-label="Go to a host" placeholder="Go to a host" autocomplete="off"
      spellcheck="false"></form>`,
		html`<p class="who">
      <button type="button" class="plain" aria-label="Times are in ${isUtc() ? 'UTC' : 'local time'}. Change" @click=${turnClock}>${isUtc() ? 'UTC' : 'Local time'}</button>
      <span>${link('/dashboard/sessions', current.actor)} <small>${current.role}</small></span>
      <button type="button" class="plain" @click=${signOut}>Sign out</button>
    </p>`,
	);
	// On a phone the entries are wider than the screen.
	bar.querySelector('[aria-current]')?.scrollIntoView({ inline: 'nearest', block: 'nearest' });
}

/** @param {SubmitEvent} event */
function find(event) {
	event.preventDefault();
	const form = /** @type {HTMLFormElement} */ (event.target);
	const name = String(new FormData(form).get('host')).trim();
	form.reset();
	if (name) go(hostPath(name));
}

function turnClock() {
	showUtc(!isUtc());
	navigation();
}

async function signOut() {
	try {
		await send('DELETE', '/sessions/current');
		signedOut('');
	} catch (error) {
		toast(why(error));
	}
}

/** @param {string} said */
function signedOut(said) {
	session.current = null;
	site.stop();
	document.title = 'Sign in - Ringfence';
	document.querySelector('dialog')?.close();
	navigation();
	tellState();
	main.replaceChildren(signInView(begin, said));
}

function tellState() {
	const since = session.current && site.stream.lateSince;
	const at = since ? new Date(since).toISOString() : null;
	morph(
		notice,
		at &&
			html`<p><b>Out of date.</b> The events have stopped ${time(at, 'ago')}. Trying to connect again.</p>`,
	);
}

async function begin() {
	show();
	for (let pause = 1000; session.current && !site.isRead; pause = Math.min(pause * 2, 30_000)) {
		try {
			await site.read();
		} catch (error) {
			if (!session.current || isAborted(error)) return;
			morph(notice, failed(error));
			await new Promise(done => setTimeout(done, pause));
		}
	}
	tellState();
}

/** The session that is there, or that a ticket of the address begins. */
async function start() {
	const ticket = new URLSearchParams(location.hash.slice(1)).get('ticket');
	if (ticket) history.replaceState(null, '', location.pathname + location.search);
	try {
		if (ticket) await signIn({ ticket });
		else session.current = await read('/sessions/current');
	} catch (error) {
		const isAsked = !ticket && error instanceof Fault && error.status === 401;
		return signedOut(isAsked ? '' : why(error));
	}
	return begin();
}

calls.addEventListener(
	'signed-out',
	() => session.current && signedOut('Your session has ended. Sign in again.'),
);
site.addEventListener('state', tellState);
places.addEventListener('go', event => {
	if (session.current && !(/** @type {CustomEvent} */ (event).detail.quiet)) show();
});
start();
