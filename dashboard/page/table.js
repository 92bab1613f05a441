/**
 * A list of the API with its filters in the address bar, so that a link shows what its sender saw. Pages follow the
 * API's `links`. It is read again when an event says that it may have changed. Rows become blocks on a phone.
 */

import { isAborted, read } from './api.js';
import { html, morph } from './dom.js';
import { buttons, failed, link, loading } from './parts.js';
import { go } from './router.js';
import { site } from './site.js';
import { spaced, View } from './view.js';
import { count } from './words.js';

/** Between two readings that events bring about. */
const AGAIN_MS = 3000;

class ListView extends View {
	list = /** @type {List<any>} */ ({});
	/** @type {unknown[] | null} */
	#rows = null;
	/** The marker of the next page. @type {string | null} */
	#next = null;
	/** @type {unknown} */
	#error = null;
	/** @type {Set<string>} */
	#selected = new Set();
	/** @type {Map<string, [string, string][]>} */
	#choices = new Map();
	#reading = new AbortController();
	#again = spaced(AGAIN_MS, () => this.#read());

	start() {
		this.#draw();
		this.#read();
		this.#loadChoices();
		this.on(site, 'event', ({ detail }) => this.list.moves?.(detail) && this.#again());
		this.on(site, 'fresh', this.#again);
	}

	#loadChoices() {
		for (const { name, choices } of this.list.filters ?? [])
			if (typeof choices === 'function')
				this.attempt(async () => {
					this.#choices.set(name, await choices());
					this.#draw();
				});
	}

	/** A part of it that fails does not take the list away. */
	fail() {}

	async #read() {
		this.#reading.abort();
		if (this.gone.signal.aborted) return;
		this.#reading = new AbortController();
		const { path, rows } = this.list;
		const query = location.search.slice(1);
		const whole = query ? `${path}${path.includes('?') ? '&' : '?'}${query}` : path;
		try {
			const body = await read(whole, this.#reading.signal);
			this.#rows = body[rows];
			const next = body.links?.find((/** @type {Api.Link} */ { rel }) => rel === 'next');
			this.#next = next ? new URL(next.href, location.origin).searchParams.get('marker') : null;
			this.#error = null;
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
		const { title, tools, about, filters } = this.list;
		morph(
			this,
			html`<header class="head"><h1 tabindex="-1">${title}</h1>${tools?.(this.#again)}</header>`,
			about,
			filters && this.#form(filters),
			this.#selection(),
			this.#error ? failed(this.#error) : this.#table(),
			this.#pages(),
		);
	}

	/** @param {Filter[]} filters */
	#form(filters) {
		const query = new URLSearchParams(location.search);
		const change = (/** @type {Event} */ { target }) => {
			const { name, value } = /** @type {HTMLInputElement} */ (target);
			this.#show({ [name]: value.trim() });
		};
		const clear = () => this.#show(Object.fromEntries(filters.map(({ name }) => [name, null])));
		const stay = (/** @type {Event} */ event) => event.preventDefault();
		const isFiltered = filters.some(({ name }) => query.has(name));
		const inputs = filters.map(
			filter =>
				html`<label data-key=${filter.name}>${filter.label}${this.#input(filter, query.get(filter.name) ?? '')}</label>`,
		);
		const isOpen = isFiltered || innerWidth > 720;
		return html`<details open=${isOpen}><summary>Filters</summary>
      <form class="filters" role="search" aria-label="Filters" @change=${change} @submit=${stay}>
        ${inputs}${isFiltered && html`<button type="button" @click=${clear}>Show all</button>`}
      </form>
    </details>`;
	}

	/** @param {Filter} filter @param {string} value */
	#input({ name, kind = 'text', choices = [], hint }, value) {
		if (kind !== 'choice') {
			const example = hint ?? (kind === 'time' && 'gte:2026-01-31T00:00:00Z');
			return html`<input name=${name} .value=${value} placeholder=${example} autocomplete="off" spellcheck="false">`;
		}
		const known = Array.isArray(choices) ? choices : (this.#choices.get(name) ?? []);
		// A link may hold what no choice is, such as in:a,b.
		const all = value && !known.some(([each]) => each === value) ? [...known, [value, value]] : known;
		const options = all.map(
			([each, text]) => html`<option value=${each} selected=${each === value}>${text}</option>`,
		);
		return html`<select name=${name} .value=${value}><option value="">any</option>${options}</select>`;
	}

	/** What may be done about the rows that are selected. */
	#selection() {
		const { actions, key, one = 'row' } = this.list;
		const rows = (this.#rows ?? []).filter(row => this.#selected.has(key(row)));
		if (!actions || rows.length === 0) return null;
		const done = () => {
			this.#selected.clear();
			this.#read();
		};
		return html`<div class="selection" data-key="selection"><b>${count(rows.length, one)} selected</b>${buttons(actions(rows, done))}</div>`;
	}

	#table() {
		const { columns, key, empty, title, actions } = this.list;
		const rows = this.#rows;
		if (!rows) return loading();
		if (rows.length === 0)
			return html`<p class="empty">${location.search ? 'Nothing matches these filters.' : empty}</p>`;
		const canSelect = (actions?.([], () => undefined).length ?? 0) > 0;
		const cells = (/** @type {unknown} */ row) =>
			columns.map(
				({ head, cell, isWide }) =>
					html`<td role="cell" class=${isWide && 'wide'} data-head=${head}>${cell(row)}</td>`,
			);
		return html`<table role="table" aria-label=${title}>
      <thead role="rowgroup">
        <tr role="row">${canSelect && html`<th class="pick" role="columnheader">${this.#all(rows)}</th>`}${columns.map(each => this.#head(each))}</tr>
      </thead>
      <tbody role="rowgroup">
        ${rows.map(row => html`<tr role="row" data-key=${key(row)}>${canSelect && this.#tick(key(row), row)}${cells(row)}</tr>`)}
      </tbody>
    </table>`;
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
		const isAll = rows.every(row => this.#selected.has(this.list.key(row)));
		const turn = () => {
			this.#selected = new Set(isAll ? [] : rows.map(this.list.key));
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
		const next = this.#next && link(this.#address({ marker: this.#next }), 'Next page');
		return html`<nav class="pages" aria-label="Pages">${!isFirst && link(this.#address({}), 'First page')}${next}</nav>`;
	}
}
customElements.define('rf-list', ListView);

/** A view of this list. @template Row @param {List<Row>} list */
export const listView = list => html`<rf-list .list=${list}></rf-list>`;
