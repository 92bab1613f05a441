/**
 * Building and updating elements. Data only ever becomes text, attributes or properties: what is parsed as markup
 * is what stands in the code.
 *
 * `html` builds one element from a template; `morph` makes the children of an element be like those that are given
 * and keeps the elements that are there, so that focus, selection and scrolling stay. Children with a `data-key` are
 * matched by it. Custom elements draw themselves: `morph` hands them attributes and properties only.
 */

/** What a template has set on a node. @type {WeakMap<Node, Record<string, unknown>>} */
const properties = new WeakMap();
/** @type {WeakMap<TemplateStringsArray, DocumentFragment>} */
const parsed = new WeakMap();
const HOLE = /§(\d+)§/g;

/**
 * One element: html`<p class="warn" @click=${listener} .value=${property} title=${attribute}>${children}</p>`.
 * An attribute that is null or false is left out; names are in lower case.
 * @param {TemplateStringsArray} strings @param {...unknown} values @returns {HTMLElement}
 */
export function html(strings, ...values) {
	const known = parsed.get(strings) ?? parse(strings);
	parsed.set(strings, known);
	const root = document.importNode(known, true);
	const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_COMMENT);
	/** @type {Node[]} */
	const found = [];
	while (walker.nextNode()) found.push(walker.currentNode);
	for (const node of found) {
		if (node instanceof Element) fillAttributes(node, values);
		else if (node instanceof Comment)
			node.replaceWith(...nodes([/** @type {Child} */ (values[Number(node.data)])]));
	}
	return /** @type {HTMLElement} */ (root.firstChild);
}

/** @param {TemplateStringsArray} strings */
function parse(strings) {
	let text = '';
	for (const [i, part] of strings.entries()) {
		text += part;
		if (i === strings.length - 1) break;
		const isInTag = text.lastIndexOf('<') > text.lastIndexOf('>');
		// What is not filled in yet would be no value of some attributes: a colon before their name hides them.
		if (isInTag) text = `${text.replace(/ ([\w-]+="?[^"<>]*)$/, ' :$1')}§${i}§`;
		else text += `<!--${i}-->`;
	}
	const template = document.createElement('template');
	// Line breaks between elements lay the code out.
	template.innerHTML = text.trim().replace(/(>?)\s*\n\s*(?=<)|(>)\s*\n\s*/g, '$1$2');
	return template.content;
}

/** @param {Element} element @param {unknown[]} values */
function fillAttributes(element, values) {
	/** @type {Record<string, unknown>} */
	const own = {};
	for (const { name, value } of [...element.attributes]) {
		const [sigil, bare] = [name[0], name.slice(1)];
		if (!sigil || !'@.:'.includes(sigil)) continue;
		const [, whole] = value.match(/^§(\d+)§$/) ?? [];
		const given = whole
			? values[Number(whole)]
			: value.replace(HOLE, (_, i) => String(values[Number(i)] ?? ''));
		element.removeAttribute(name);
		if (sigil === '@') own[`on${bare}`] = given ?? null;
		else if (sigil === '.') own[bare] = given;
		else if (given != null && given !== false)
			element.setAttribute(bare, given === true ? '' : String(given));
	}
	Object.assign(element, own);
	properties.set(element, own);
}

/** @param {readonly Child[]} children @returns {Node[]} */
function nodes(children) {
	return children.flatMap(child => {
		if (Array.isArray(child)) return nodes(child);
		if (child instanceof Node) return [child];
		return child == null || child === false || child === '' ? [] : [document.createTextNode(String(child))];
	});
}

/** Makes the children of `parent` be like these. @param {Element} parent @param {...Child} children */
export function morph(parent, ...children) {
	const keyed = new Map([...parent.children].map(child => [keyOf(child), child]));
	/** @type {ChildNode | null} */
	let at = parent.firstChild;
	for (const node of nodes(children)) {
		const key = keyOf(node);
		const old = node.parentNode === parent ? node : key === null ? at : keyed.get(key);
		if (old && (old === node || isLike(old, node))) {
			if (old === at) at = at?.nextSibling ?? null;
			else parent.insertBefore(old, at);
			if (old !== node) patch(old, node);
		} else parent.insertBefore(node, at);
	}
	while (at) {
		const next = at.nextSibling;
		at.remove();
		at = next;
	}
}

/** @param {Node} node */
const keyOf = node => (node instanceof Element ? node.getAttribute('data-key') : null);

/** @param {Node} a @param {Node} b */
const isLike = (a, b) => a.nodeName === b.nodeName && keyOf(a) === keyOf(b);

/** @param {Node} old @param {Node} next */
function patch(old, next) {
	if (!(old instanceof Element && next instanceof Element)) {
		if (old.nodeValue !== next.nodeValue) old.nodeValue = next.nodeValue;
		return;
	}
	// Whether its details are open is up to the reader.
	const isKept = (/** @type {string} */ name) => name === 'open' && old instanceof HTMLDetailsElement;
	for (const { name } of [...old.attributes])
		if (!next.hasAttribute(name) && !isKept(name)) old.removeAttribute(name);
	for (const { name, value } of next.attributes)
		if (old.getAttribute(name) !== value && !isKept(name)) old.setAttribute(name, value);
	patchProperties(old, next);
	if (!old.nodeName.includes('-')) morph(old, ...next.childNodes);
}

/** What a person has typed or ticked is kept. */
const TYPED = new Set(['value', 'checked']);

/** @param {Element} old @param {Element} next */
function patchProperties(old, next) {
	const [was, own] = [properties.get(old) ?? {}, properties.get(next) ?? {}];
	for (const [name, value] of Object.entries(own))
		if (!TYPED.has(name) || was[name] !== value) Object.assign(old, { [name]: value });
	properties.set(old, own);
}
