/** The simulated hosts of a demonstration as they really are, and what breaks them. */

import { send, why } from '../api.js';
import { toast } from '../dialog.js';
import { html } from '../dom.js';
import { line, lines, linkTo, panel } from '../parts.js';

/** @type {Record<string, string>} */
const CONDITIONS = { running: 'runs', hung: 'hangs', crashed: 'crashed' };
/** @type {Record<string, string>} */
const FAULTS = {
	none: 'good',
	lie: 'lies',
	slow: 'slow',
	silent: 'silent',
	refuse: 'refuses',
	flap: 'flaps',
	ghost: 'shows what is not so',
};

/** @param {Api.Demo} demo @param {After} after */
export const demoPanel = ({ hosts }, after) =>
	panel(
		'Break a host',
		html`<p class="quiet">These hosts are simulated. Let one hang or crash, or break its power device, and watch.</p>`,
		lines(hosts.map(host => line(truth(host), choices(host, after), host.name))),
	);

/** @param {Api.DemoHost} host */
const truth = ({ name, powered, may_write }) => [
	linkTo('hosts', name),
	html` <small>${powered ? 'has power' : 'is off'}, ${may_write ? 'can write' : 'cannot write'}</small>`,
];

/** @param {Api.DemoHost} host @param {After} after */
function choices({ name, condition, devices }, after) {
	const put = async (/** @type {string} */ path, /** @type {Record<string, string>} */ body) => {
		await send('PUT', path, body).catch(error => toast(why(error)));
		after();
	};
	const host = `/demo/${encodeURIComponent(name)}`;
	const fault = devices[`${name}/power`]?.fault?.kind ?? 'none';
	return [
		choice(`Condition of ${name}`, CONDITIONS, condition, chosen => put(host, { condition: chosen })),
		choice(`Power device of ${name}`, FAULTS, fault, chosen => put(`${host}/power/fault`, { fault: chosen })),
	];
}

/** @param {string} label @param {Record<string, string>} words @param {string} now @param {(chosen: string) => void} choose */
function choice(label, words, now, choose) {
	const turn = (/** @type {Event} */ { target }) => choose(/** @type {HTMLSelectElement} */ (target).value);
	const options = Object.entries(words).map(
		([value, text]) => html`<option value=${value} selected=${value === now}>${text}</option>`,
	);
	return html`<select aria-label=${label} .value=${now} @change=${turn}>${options}</select>`;
}
