/** What is wrong, what Ringfence does about it, what it waits for, and what is to be done now. */

import {
	everything,
	operationActions,
	resume,
	suspend,
	suspendableHost,
	suspendableSegment,
} from '../act.js';
import { read, readIfAny } from '../api.js';
import { html, morph } from '../dom.js';
import '../map.js';
import { needs } from '../needs.js';
import { buttons, ends, failed, line, lines, link, linkTo, listed, panel, words } from '../parts.js';
import { operationPath } from '../router.js';
import { may } from '../session.js';
import { glyph, sign } from '../shapes.js';
import { site } from '../site.js';
import { time } from '../time.js';
import { spaced, View } from '../view.js';
import { count, progress, told } from '../words.js';
import { delivers, health } from './configured.js';
import { demoPanel } from './demo.js';

/** Between two readings that events bring about; while something runs; and while nothing does. */
const AGAIN_MS = 1500;
const RUNNING_MS = 3000;
const IDLE_MS = 30_000;
const READ = 100;
const FIRST = 12;
const EVENTS = 8;

class Overview extends View {
	/** @type {Record<'running' | 'held' | 'waiting', Api.Operation[]>} */
	#operations = { running: [], held: [], waiting: [] };
	/** @type {Api.Method[]} */
	#methods = [];
	/** @type {Api.Subscription[]} */
	#subscriptions = [];
	/** @type {Api.Suspended | null} */
	#suspended = null;
	/** @type {Api.Services | null} */
	#services = null;
	/** @type {Api.Demo | null} */
	#demo = null;
	/** @type {Api.Event[]} */
	#events = [];
	#isRead = false;
	/** One element for good: a map that is moved is laid out anew. */
	#map = html`<section class="panel" data-key="map"><h2>Hosts</h2><rf-map></rf-map></section>`;
	#work = spaced(AGAIN_MS, () => this.attempt(() => this.#readWork()));
	#rest = spaced(AGAIN_MS, () => this.attempt(() => this.#readRest()));
	#soon = spaced(250, () => this.#draw());

	start() {
		this.#draw();
		this.#all();
		this.on(site, 'fresh', () => this.#all());
		this.on(site, 'hosts', this.#soon);
		this.on(site, 'event', ({ detail }) => this.#take(detail));
		this.every(RUNNING_MS, () => this.#operations.running.length > 0 && this.#work());
		this.every(IDLE_MS, this.#rest);
	}

	#all() {
		this.#work();
		this.#rest();
	}

	/** @param {Api.Event} event */
	#take(event) {
		this.#events = [event, ...this.#events].slice(0, EVENTS);
		if (event.type.startsWith('operation.')) this.#work();
		if (this.#demo || /suspended|resumed|^subscription/.test(event.type)) this.#rest();
		this.#soon();
	}

	async #readWork() {
		const [running = [], held = [], waiting = []] = await Promise.all(
			['running', 'held', 'needs_operator'].map(
				async status =>
					(await read(`/operations?status=${status}&limit=${READ}`, this.gone.signal)).operations,
			),
		);
		this.#operations = { running, held, waiting };
		this.#isRead = true;
		this.#soon();
	}

	async #readRest() {
		const paths = [
			'methods',
			'subscriptions',
			'suspensions',
			'services',
			'demo',
			`events?sort=sequence:desc&limit=${EVENTS}`,
		];
		const [methods, subscriptions, suspended, services, demo, events] = await Promise.all(
			paths.map(path => readIfAny(`/${path}`, this.gone.signal)),
		);
		this.#methods = methods?.methods ?? [];
		this.#subscriptions = subscriptions?.subscriptions ?? [];
		[this.#suspended, this.#services, this.#demo] = [suspended, services, demo];
		this.#events = events?.events ?? [];
		this.#soon();
	}

	/** @param {unknown} error */
	fail(error) {
		if (!this.#isRead) morph(this, html`<h1 tabindex="-1">Overview</h1>`, failed(error));
	}

	#draw() {
		if (!this.isConnected) return;
		const { running, held, waiting } = this.#operations;
		const found = needs(waiting, this.#methods, this.#subscriptions);
		const brief = running.length === READ ? `${READ} or more` : running.length;
		morph(
			this,
			html`<h1 class="headline" tabindex="-1">${this.#headline(found)}</h1>`,
			found.length > 0 &&
				panel('Needs a person', html`<ul class="todo">${found.slice(0, READ).map(drawNeed)}</ul>`),
			running.length > 0 && panel(`Under way (${brief})`, work(running, 'running', underWay)),
			held.length > 0 &&
				panel(
					'Held by safeguards',
					html`<p class="quiet">They go on by themselves when nothing holds them.</p>`,
					work(held, 'held', heldOne),
				),
			this.#map,
			html`<div class="grid">${[
				this.#demo && may('operator') && demoPanel(this.#demo, this.#rest),
				this.#suspensions(),
				this.#devices(),
				this.#deliveries(),
				this.#services && drawServices(this.#services),
				this.#happened(),
			]}</div>`,
		);
	}

	/** @param {Need[]} found */
	#headline(found) {
		if (!this.#isRead || !site.isRead) return 'Loading';
		const under = this.#operations.running.length + this.#operations.held.length;
		const doing = under > 0 && `${count(under, 'operation')} under way. `;
		const urgent = found.filter(({ kind }) => kind !== 'unknown').length;
		const all = [...site.hosts.values()];
		const up = all.filter(host => host.failure_state === 'UP' && host.fencing_state === 'UNFENCED').length;
		const hosts =
			up === all.length
				? `All ${count(up, 'host')} are UP.`
				: `${up.toLocaleString('en')} of ${count(all.length, 'host')} are UP.`;
		if (urgent > 0)
			return [
				glyph('needs'),
				`${urgent} ${urgent === 1 ? 'thing needs' : 'things need'} you. `,
				doing,
				hosts,
			];
		if (all.length === 0) return 'No hosts yet. Add some with: ringfence host add';
		const calm = found.length > 0 ? 'Nothing is urgent. ' : 'Nothing needs you. ';
		return [glyph('up'), calm, doing, hosts];
	}

	#suspensions() {
		if (!this.#suspended) return null;
		const { everything: all, segments, hosts } = this.#suspended;
		const row = (
			/** @type {Api.Suspension} */ suspension,
			/** @type {string} */ what,
			/** @type {Suspendable} */ target,
		) =>
			line(
				[
					html`<b>${what}</b>`,
					words(`${suspension.reason} (${suspension.by})`),
					html`<small>${ends(suspension)}</small>`,
				],
				may('operator') &&
					html`<button type="button" @click=${() => resume([target], this.#rest)}>Resume...</button>`,
				what,
			);
		const rows = [
			all && row(all, 'everything', everything),
			...segments.map(each => row(each.suspension, `segment ${each.name}`, suspendableSegment(each))),
			...hosts.map(each => row(each.suspension, `host ${each.name}`, suspendableHost(each))),
		];
		const stop = { label: 'Suspend everything', run: () => suspend([everything], this.#rest) };
		return panel(
			'Suspensions',
			lines(rows) || html`<p class="empty">Nothing is suspended.</p>`,
			may('operator') && !all && buttons([stop]),
		);
	}

	#devices() {
		const rows = this.#methods
			.toSorted((a, b) => (b.checks?.failing ?? 0) - (a.checks?.failing ?? 0))
			.slice(0, FIRST)
			.map(each => line(linkTo('methods', each.name), health(each), each.name));
		return listed('Devices', rows, link('/dashboard/methods', 'All methods'));
	}

	#deliveries() {
		const rows = this.#subscriptions
			.slice(0, FIRST)
			.map(each => line(linkTo('subscriptions', each.name), delivers(each), each.name));
		return listed('Subscriptions', rows, link('/dashboard/subscriptions', 'All subscriptions'));
	}

	#happened() {
		const rows = this.#events.map(event =>
			line(
				html`<div class="clamp">${event.host && linkTo('hosts', event.host)} ${told(event)}</div>`,
				time(event.occurred_at, 'ago'),
				event.sequence,
			),
		);
		return listed('What has happened', rows, link('/dashboard/events?sort=sequence:desc', 'All events'));
	}
}
customElements.define('rf-overview', Overview);

/** @param {Need} need */
const drawNeed = ({ key, kind, href, title, since, why, todo, actions }) =>
	html`<li data-key=${key}>${glyph(kind)}<div>
    <p>${link(href, html`<b>${title}</b>`)} <small>${since && time(since, 'ago')}</small></p>
    ${why && html`<p class="quiet clamp">${why}</p>`}
    <p>${todo}</p>
    ${buttons(actions)}
  </div></li>`;

/** @param {Api.Operation[]} operations @param {string} status @param {(operation: Api.Operation) => Child} draw */
const work = (operations, status, draw) => [
	html`<ul class="running">${operations.slice(0, FIRST).map(each => html`<li data-key=${each.id}>${draw(each)}</li>`)}</ul>`,
	operations.length > FIRST && link(`/dashboard/operations?status=${status}`, `All ${operations.length}`),
];

/** @param {Api.Operation} operation @param {Child} since */
const headOf = ({ id, host, host_id, kind }, since) =>
	html`<p>${link(operationPath(id), html`<b>${host ?? host_id}</b>`, ` ${kind}`)} <small>${since}</small></p>`;

/** @param {Api.Operation} operation */
function underWay(operation) {
	const { done, all } = progress(operation);
	const label = `${done} of ${count(all, 'task')} done`;
	return [
		headOf(operation, ['for ', time(operation.created_at, 'run')]),
		html`<progress max=${Math.max(all, 1)} value=${done} aria-label=${label}></progress>`,
		html`<p class="quiet">${operation.detail || label}</p>`,
	];
}

/** @param {Api.Operation} operation */
function heldOne(operation) {
	const by = (operation.held?.by ?? []).map(
		({ safeguard, reason, release }) =>
			html`<li><b>${safeguard}</b> ${reason}${release && words(`Ends: ${release}`)}</li>`,
	);
	const since = operation.held?.since ?? operation.updated_at;
	return [
		headOf(operation, ['held for ', time(since, 'run')]),
		html`<ul>${by}</ul>`,
		buttons(operationActions(operation)),
	];
}

/** @param {Api.Services} services */
const drawServices = ({ engines, workers }) =>
	listed('Services', [
		...engines.map(({ name, seen_at }) => line(`engine ${name}`, ['seen ', time(seen_at, 'ago')], name)),
		...workers.flatMap(({ zone, resource, workers: n, queued }) => {
			const what = `zone ${zone}, ${resource}`;
			const told = n !== null && `${count(n, 'worker')}, ${queued} waiting`;
			return told ? line(sign(n ? 'confirmed' : 'failed', what), told, what) : [];
		}),
	]);

export const overviewView = () => html`<rf-overview></rf-overview>`;
