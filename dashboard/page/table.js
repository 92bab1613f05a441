/** A list of the API with its filters in the address bar, so that a link shows what its sender saw. */

import { isAborted, read } from './api.js';
import { html, morph } from './dom.js';
import { buttons, failed, link, linkTo, loading } from './parts.js';
import { go } from './router.js';
import { site } from './site.js';
import { label, value } from './value.js';
import { spaced, View } from './view.js';
import { capital } from './words.js';

const AGAIN_MS = 3000;
/** Not all changes are events. */
const IDLE_MS = 10_000;

class ListView extends View {
	list = /** @type {List<any>} */ ({});
	/** @type {unknown[] | null} */
	#rows = null;
	/** What the list has in `of`, and its own answer. @type {any[] | null} */
	#of = null;
	/** @type {Record<string, string | null> | null} */
	#next = null;
	/** @type {unknown} */
	#error = null;
	/** @type {Set<string>} */
	#selected = new Set();
	#reading = new AbortController();
	#again = spaced(AGAIN_MS, () => this.#read());

	start() {
		this.#draw();
		this.#read();
		this.on(site, 'event', this.#again);
		this.on(site, 'fresh', this.#again);
		this.every(IDLE_MS, this.#again);
	}

	async #read() {
		this.#reading.abort();
		if (this.gone.signal.aborted) return;
		this.#reading = new AbortController();
		const { path, of = [] } = this.list;
		const { signal } = this.#reading;
		const [base, own] = path.split('?');
		const query = new URLSearchParams(location.search);
		for (const [name, value] of new URLSearchParams(own)) if (!query.has(name)) query.set(name, value);
		try {
			const [body, ...it] = await Promise.all([`${base}?${query}`, ...of].map(each => read(each, signal)));
			this.#rows = body[rowsOf(this.list)] ?? [];
			const next = body.links?.find((/** @type {Api.Link} */ { rel }) => rel === 'next');
			const to = next && new URL(next.href, location.origin).searchParams;
			this.#next = to && { marker: to.get('marker'), after: to.get('after') };
			[this.#of, this.#error] = [[...it, body], null];
		} catch (error) {
			if (isAborted(error)) return;
			this.#error = error;
		}
		this.#draw();
	}

	/** The address of the list with these parameters, on its first page. @param {Record<string, string | null>} changes */
	#address(changes) {
		const query = new URLSearchParams(location.search);
		query.delete('marker');
		for (const [name, value] of Object.entries(changes)) value ? query.set(name, value) : query.delete(name);
		return query.size > 0 ? `${location.pathname}?${query}` : location.pathname;
	}

	/** @param {Record<string, string | null>} changes */
	#show(changes) {
		go(this.#address(changes), { quiet: true });
		this.#selected.clear();
		if (this.#error) this.#rows = null;
		this.#read();
		this.#draw();
	}

	#draw() {
		const { about, filters = [], head, columns } = this.list;
		morph(
			this,
			html`<header class="head"><h1 tabindex="-1">${titleOf(this.list)}</h1></header>`,
			this.#of && about?.(this.#of, () => this.#read()),
			head && html`<h2>${head}</h2>`,
			filters.length > 0 && this.#form(filters),
			this.#selection(),
			this.#error ? failed(this.#error) : (columns.length > 0 || !this.#rows) && this.#table(),
			this.#pages(),
		);
	}

	/** @param {string[]} filters */
	#form(filters) {
		const query = new URLSearchParams(location.search);
		const change = (/** @type {Event} */ { target }) => {
			const { name, value } = /** @type {HTMLInputElement} */ (target);
			this.#show({ [name]: value.trim() });
		};
		const all = filters.map(filter => filter.split('='));
		const clear = () => this.#show(Object.fromEntries(all.map(([name]) => [name, null])));
		const stay = (/** @type {Event} */ event) => event.preventDefault();
		const isFiltered = all.some(([name = '']) => query.has(name));
		const inputs = all.map(
			([name = '', choices]) =>
				html`<label data-key=${name}>${label(name)}${input(name, choices, query.get(name) ?? '')}</label>`,
		);
		const isOpen = isFiltered || innerWidth > 720;
		return html`<details open=${isOpen}><summary>Filters</summary>
      <form class="filters" role="search" aria-label="Filters" @change=${change} @submit=${stay}>
        ${inputs}${isFiltered && html`<button type="button" @click=${clear}>Show all</button>`}
      </form>
    </details>`;
	}

	#selection() {
		const { actions } = this.list;
		const rows = (this.#rows ?? []).filter(row => this.#selected.has(keyOf(row)));
		if (!actions || rows.length === 0) return null;
		const done = () => {
			this.#selected.clear();
			this.#read();
		};
		return html`<div class="selection" data-key="selection"><b>${rows.length} selected</b>${buttons(actions(rows, done))}</div>`;
	}

	#table() {
		const { head, actions } = this.list;
		const columns = this.list.columns.map(column => this.#column(column));
		const what = head ?? titleOf(this.list);
		const rows = this.#rows;
		if (!rows) return loading();
		if (rows.length === 0)
			return html`<p class="empty">${location.search ? 'Nothing matches these filters.' : `No ${what.toLowerCase()} yet.`}</p>`;
		const canSelect = !!actions?.([], () => undefined).length;
		const cells = (/** @type {unknown} */ row) =>
			columns.map(
				({ head, cell, isWide }) =>
					html`<td role="cell" class=${isWide && 'wide'} data-head=${head}><div>${cell(row, this.#of ?? [])}</div></td>`,
			);
		return html`<table role="table" aria-label=${what}>
      <thead role="rowgroup">
        <tr role="row">${canSelect && html`<th class="pick" role="columnheader">${this.#all(rows)}</th>`}${columns.map(each => this.#head(each))}</tr>
      </thead>
      <tbody role="rowgroup">
        ${rows.map(row => html`<tr role="row" data-key=${keyOf(row)}>${canSelect && this.#tick(keyOf(row), row)}${cells(row)}</tr>`)}
      </tbody>
    </table>`;
	}

	/** @param {string | Column<unknown>} column @returns {Column<any>} */
	#column(column) {
		if (typeof column !== 'string') return column;
		const cell = (/** @type {Record<string, unknown>} */ row) =>
			column === 'name' ? linkTo(rowsOf(this.list), String(row.name)) : value(column, row[column]);
		return { head: label(column), cell, isWide: column === 'detail' };
	}

	/** @param {Column<unknown>} column */
	#head({ head, sort }) {
		if (!sort) return html`<th role="columnheader">${head}</th>`;
		const now = new URLSearchParams(location.search).get('sort');
		const order = now === sort ? 'ascending' : now === `${sort}:desc` ? 'descending' : 'none';
		const turn = () => this.#show({ sort: order === 'ascending' ? `${sort}:desc` : sort });
		const arrow = { ascending: ' ↑', descending: ' ↓', none: '' }[order];
		return html`<th role="columnheader" aria-sort=${order}><button type="button" class="plain" @click=${turn}>${head}${arrow}</button></th>`;
	}

	/** @param {unknown[]} rows */
	#all(rows) {
		const isAll = rows.every(row => this.#selected.has(keyOf(row)));
		const turn = () => {
			this.#selected = new Set(isAll ? [] : rows.map(keyOf));
			this.#draw();
		};
		return html`<input type="checkbox" aria-label="Select all of this page" .checked=${isAll} @change=${turn}>`;
	}

	/** @param {string} key @param {any} row */
	#tick(key, row) {
		const turn = () => {
			if (!this.#selected.delete(key)) this.#selected.add(key);
			this.#draw();
		};
		const label = `Select ${row.name ?? row.host ?? key}`;
		return html`<td class="pick" role="cell"><input type="checkbox" aria-label=${label} .checked=${this.#selected.has(key)} @change=${turn}></td>`;
	}

	#pages() {
		const isFirst = !new URLSearchParams(location.search).has('marker');
		if (isFirst && !this.#next) return null;
		const next = this.#next && link(this.#address(this.#next), 'Next page');
		return html`<nav class="pages" aria-label="Pages">${!isFirst && link(this.#address({}), 'First page')}${next}</nav>`;
	}
}
customElements.define('rf-list', ListView);

/** @type {Record<string, string>} */
const HINTS = {
	name: 'in:sim-1,sim-2',
	action: 'operation.',
	created_at: 'gte:2026-01-31T00:00:00Z',
	since: '2026-01-31T00:00:00Z',
};

/** @param {string} name @param {string | undefined} choices @param {string} value */
function input(name, choices, value) {
	if (choices === undefined)
		return html`<input name=${name} .value=${value} placeholder=${HINTS[name]} autocomplete="off" spellcheck="false">`;
	const known = choices ? choices.split(',') : site.segments.map(each => each.name);
	// A link may hold what no choice is, such as in:a,b.
	const all = value && !known.includes(value) ? [...known, value] : known;
	const options = all.map(
		each => html`<option value=${each} selected=${each === value}>${each.replaceAll('_', ' ')}</option>`,
	);
	return html`<select name=${name} .value=${value}><option value="">any</option>${options}</select>`;
}

/** @param {List<any>} list */
const rowsOf = ({ path }) => path.replace(/.*\/|\?.*/g, '');

/** @param {List<any>} list */
const titleOf = list => list.title ?? capital(rowsOf(list));

/** @param {any} row */
const keyOf = row => String(row.id);

/** @param {List<any>} list */
const listView = list => html`<rf-list .list=${list}></rf-list>`;

/** @param {List<any>} list @param {(path: string, name: string) => List<any>} [one] @returns {Place} */
export const placeOf = (list, one) => ({
	title: titleOf(list),
	list: () => listView(list),
	one:
		one &&
		(name => {
			const title = `${capital(rowsOf(list).slice(0, -1))} ${name}`;
			return listView({ ...one(`/${rowsOf(list)}/${encodeURIComponent(name)}`, name), title });
		}),
});
