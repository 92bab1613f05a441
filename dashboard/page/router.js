/** Where in the page the reader is. Every view has its address, its filters in it. */

/** Tells `go` when the address has changed. */
export const places = new EventTarget();

/** @param {string} address @param {{ replace?: boolean, quiet?: boolean }} [how] `quiet`: the view that is shown goes on */
export function go(address, { replace = false, quiet = false } = {}) {
	if (replace) history.replaceState(null, '', address);
	else history.pushState(null, '', address);
	places.dispatchEvent(new CustomEvent('go', { detail: { quiet } }));
}

addEventListener('popstate', () => places.dispatchEvent(new CustomEvent('go', { detail: { quiet: false } })));

document.addEventListener('click', click => {
	const link = click.target instanceof Element ? click.target.closest('a') : null;
	const isPlain = click.button === 0 && !(click.metaKey || click.ctrlKey || click.shiftKey || click.altKey);
	const href = link?.getAttribute('href') ?? '';
	if (!isPlain || click.defaultPrevented || !/^\/dashboard(?![\w.-])/.test(href)) return;
	click.preventDefault();
	go(href);
});

/** @param {string} name */
export const hostPath = name => `/dashboard/hosts/${encodeURIComponent(name)}`;

/** @param {string} id */
export const operationPath = id => `/dashboard/operations/${encodeURIComponent(id)}`;
