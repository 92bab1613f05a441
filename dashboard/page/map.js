/** All hosts as cells, drawn on one canvas a segment. Arrow keys move the focus; Enter opens the host. */

import { html, morph } from './dom.js';
import { link } from './parts.js';
import { go, hostPath } from './router.js';
import { glyph, KINDS, kindOf } from './shapes.js';
import { site } from './site.js';
import { View } from './view.js';
import { count } from './words.js';

/** @param {number} hosts */
const sizeFor = hosts => (hosts <= 300 ? 24 : hosts <= 3000 ? 16 : 12);
const HINT = 'Point at a cell, or use Tab and the arrow keys. Enter opens the host.';
const SHOWN = /** @type {CellKind[]} */ (Object.keys(KINDS));
const PATHS = new Map(SHOWN.map(kind => [kind, new Path2D(KINDS[kind].path)]));

class HostMap extends View {
	#legend = html`<ul class="legend"></ul>`;
	#caption = html`<p class="caption">${HINT}</p>`;
	#field = html`<div class="blocks"></div>`;
	#option = html`<span class="spoken" role="option" aria-selected="true" id="cell"></span>`;
	/** @type {Block[]} */
	#blocks = [];
	/** @type {Map<string, Spot>} */
	#places = new Map();
	/** @type {Spot} */
	#at = [0, 0];
	#cell = 16;
	/** @type {Set<string>} */
	#dirty = new Set();
	/** @type {Record<string, string>} */
	#colours = {};

	start() {
		this.replaceChildren(this.#legend, this.#caption, this.#field);
		const field = this.#field;
		field.onkeydown = key => this.#key(key);
		field.onpointermove = move => this.#say(this.#under(move));
		field.onpointerleave = () => this.#say(null);
		field.onclick = click => this.#open(this.#under(click));
		for (const type of ['focusin', 'focusout']) this.on(field, type, () => this.#turn());
		this.on(site, 'fresh', () => this.#lay());
		this.on(site, 'hosts', ({ detail }) => this.#change(detail));
		this.on(matchMedia('(prefers-color-scheme: dark)'), 'change', () => this.#lay());
		let width = 0;
		const observer = new ResizeObserver(() => {
			if (this.clientWidth !== width) this.#lay();
			width = this.clientWidth;
		});
		observer.observe(this);
		this.gone.signal.addEventListener('abort', () => observer.disconnect());
	}

	#lay() {
		if (!site.isRead || this.clientWidth === 0) return;
		const hadFocus = this.#hasFocus();
		const styles = getComputedStyle(this);
		for (const name of [...SHOWN, 'text']) this.#colours[name] = styles.getPropertyValue(`--${name}`);
		this.#cell = sizeFor(site.hosts.size);
		const hosts = Map.groupBy(site.hosts.values(), host => host.segment);
		this.#places.clear();
		this.#field.replaceChildren();
		this.#blocks = site.segments.map((segment, i) => this.#build(segment, hosts.get(segment.name) ?? [], i));
		if (!this.#hostAt(this.#at)) this.#at = [this.#blocks.findIndex(block => block.hosts.length > 0), 0];
		for (const place of this.#places.values()) this.#draw(place);
		this.#count();
		this.#tab(hadFocus);
	}

	/** @param {SiteSegment} segment @param {SiteHost[]} hosts @param {number} at @returns {Block} */
	#build({ name, is_suspended, is_automatic }, hosts, at) {
		const [cell, dense] = [this.#cell, devicePixelRatio || 1];
		const room = Math.max(4, Math.floor((this.clientWidth - 26) / cell));
		const columns = Math.min(room, Math.max(Math.ceil(Math.sqrt(hosts.length * 2)), Math.ceil(110 / cell)));
		const [width, height] = [columns * cell, Math.ceil(hosts.length / columns) * cell];
		for (const [index, host] of hosts.entries()) this.#places.set(host.name, [at, index]);
		const canvas = document.createElement('canvas');
		Object.assign(canvas, { width: width * dense, height: height * dense });
		Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
		canvas.getContext('2d')?.scale(dense, dense);
		const label = `Segment ${name}, ${count(hosts.length, 'host')}`;
		const box = html`<div class="cells" data-block=${at} aria-label=${label}>${canvas}</div>`;
		const notes = [is_suspended && ', suspended', !is_automatic && ', not automatic'];
		const segment = link(`/dashboard/hosts?segment=${encodeURIComponent(name)}`, name);
		this.#field.append(html`<div><p>${segment}<small>${hosts.length}${notes}</small></p>${box}</div>`);
		return { box, canvas, hosts, columns };
	}

	/** @param {SiteHost[]} hosts */
	#change(hosts) {
		if (this.#dirty.size === 0) requestAnimationFrame(() => this.#flush());
		for (const { name } of hosts) this.#dirty.add(name);
	}

	#flush() {
		for (const name of this.#dirty) this.#draw(this.#places.get(name));
		this.#dirty.clear();
		this.#count();
		this.#speak();
	}

	/** @param {Spot | undefined} place */
	#draw(place) {
		const host = this.#hostAt(place);
		if (!place || !host) return;
		const [block, index] = [this.#blocks[place[0]], place[1]];
		const context = block?.canvas.getContext('2d');
		if (!block || !context) return;
		const cell = this.#cell;
		const kind = kindOf(host);
		context.save();
		context.translate((index % block.columns) * cell, Math.floor(index / block.columns) * cell);
		context.clearRect(0, 0, cell, cell);
		context.fillStyle = this.#colours[kind] ?? '';
		if (host.marks?.some(each => each !== 'proof_ended')) context.fillRect(2, cell - 2, cell - 4, 1);
		if (place.join() === this.#at.join() && this.#hasFocus()) {
			context.strokeStyle = this.#colours.text ?? '';
			context.strokeRect(1, 1, cell - 2, cell - 2);
		}
		context.translate(cell * 0.14, cell * 0.14);
		context.scale(cell * 0.072, cell * 0.072);
		context.fill(PATHS.get(kind) ?? new Path2D(), 'evenodd');
		context.restore();
	}

	#hasFocus() {
		return document.activeElement?.className === 'cells';
	}

	/** @param {Spot | null | undefined} place */
	#hostAt(place) {
		return (place && this.#blocks[place[0]]?.hosts[place[1]]) ?? null;
	}

	/** @param {MouseEvent} event */
	#under({ target, clientX, clientY }) {
		if (!(target instanceof HTMLCanvasElement)) return null;
		const block = Number(target.parentElement?.dataset.block);
		const { left, top } = target.getBoundingClientRect();
		const [column, row] = [clientX - left, clientY - top].map(pixels => Math.floor(pixels / this.#cell));
		return this.#hostAt([block, Number(row) * (this.#blocks[block]?.columns ?? 0) + Number(column)]);
	}

	/** @param {SiteHost | null} host */
	#open(host) {
		if (host) go(hostPath(host.name));
	}

	/** @param {KeyboardEvent} event */
	#key(event) {
		const [at, index] = this.#at;
		const { hosts, columns } = this.#blocks[at] ?? {};
		if (!hosts || !columns || !this.#hasFocus()) return;
		const last = hosts.length - 1;
		const isLastRow = Math.floor(index / columns) === Math.floor(last / columns);
		/** Where in the segment; before and beyond it are its neighbours. @type {Record<string, number>} */
		const keys = {
			ArrowLeft: index - 1,
			ArrowRight: index + 1,
			ArrowUp: index - columns,
			ArrowDown: isLastRow ? hosts.length : Math.min(index + columns, last),
			Home: 0,
			End: last,
			PageUp: -1,
			PageDown: hosts.length,
		};
		const to = keys[event.key];
		if (event.key === 'Enter') this.#open(this.#hostAt(this.#at));
		else if (to === undefined) return;
		else if (to < 0) this.#segment(-1);
		else if (to > last) this.#segment(1);
		else this.#to([at, to]);
		event.preventDefault();
	}

	/** @param {1 | -1} step */
	#segment(step) {
		let at = this.#at[0] + step;
		while (this.#blocks[at]?.hosts.length === 0) at += step;
		const block = this.#blocks[at];
		if (block) this.#to([at, step > 0 ? 0 : block.hosts.length - 1]);
	}

	/** @param {Spot} place */
	#to(place) {
		const before = this.#at;
		this.#at = place;
		this.#tab(true);
		this.#draw(before);
		this.#turn();
	}

	#turn() {
		this.#draw(this.#at);
		this.#say(null);
	}

	/** One block is in the order of the Tab key, and has what a screen reader reads. @param {boolean} focus */
	#tab(focus) {
		for (const [i, { box, hosts }] of this.#blocks.entries()) {
			const isHere = i === this.#at[0];
			box.tabIndex = isHere ? 0 : -1;
			box.role = isHere ? 'listbox' : 'img';
			if (!isHere) continue;
			box.setAttribute('aria-activedescendant', 'cell');
			box.append(this.#option);
			this.#option.ariaPosInSet = String(this.#at[1] + 1);
			this.#option.ariaSetSize = String(hosts.length);
			if (focus) box.focus();
		}
		this.#speak();
	}

	#speak() {
		const host = this.#hostAt(this.#at);
		if (host) this.#option.textContent = describe(host);
	}

	/** @param {SiteHost | null} pointed */
	#say(pointed) {
		const host = pointed ?? (this.#hasFocus() ? this.#hostAt(this.#at) : null);
		morph(this.#caption, host ? [glyph(kindOf(host)), describe(host)] : HINT);
	}

	#count() {
		const found = Map.groupBy(site.hosts.values(), kindOf);
		const entry = (/** @type {CellKind} */ kind) => {
			const { label, list } = KINDS[kind];
			const n = found.get(kind)?.length ?? 0;
			const text = [glyph(kind), html`<b>${n.toLocaleString('en')}</b>`, ` ${label}`];
			return n > 0 && html`<li data-key=${kind}>${link(`/dashboard/${list}`, text)}</li>`;
		};
		morph(this.#legend, SHOWN.map(entry));
	}
}
customElements.define('rf-map', HostMap);

/** `sim-1, UP, UNFENCED, fence running`. @param {SiteHost} host */
function describe({ name, failure_state, fencing_state, operation, marks = [] }) {
	const work = operation && `${operation.kind} ${operation.status}`;
	return [name, failure_state, fencing_state, work, ...marks].filter(Boolean).join(', ').replaceAll('_', ' ');
}
