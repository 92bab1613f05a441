/** Signing in: a token, or a user of Keystone, becomes a session. The token is kept nowhere. */

import { read, send, why } from '../api.js';
import { html, morph } from '../dom.js';
import { session } from '../session.js';
import { View } from '../view.js';

/** @param {Record<string, unknown>} body */
export async function signIn(body) {
	session.current = (await send('POST', '/sessions', body)).body;
}

/** @type {Record<string, string>} */
const WAYS = { keystone: 'Keystone', token: 'Token' };

class SignIn extends View {
	done = () => {};
	said = '';
	/** @type {string[]} */
	#ways = [];
	#way = 'token';

	start() {
		this.attempt(async () => {
			const { ways } = await read('/sessions/ways', this.gone.signal);
			this.#ways = Object.keys(WAYS).filter(way => ways.includes(way));
			this.#turn(this.#ways[0] ?? 'token');
		});
	}

	/** @param {string} way */
	#turn(way) {
		this.#way = way;
		this.#draw();
		this.#focus();
	}

	#focus() {
		/** @type {HTMLElement | null} */ (this.querySelector('input:not([type=radio])'))?.focus();
	}

	#draw() {
		const choices = this.#ways.map(
			way => html`<label data-key=${way}><input type="radio" name="way" .checked=${way === this.#way}
        @change=${() => this.#turn(way)}>${WAYS[way]}</label>`,
		);
		const fields =
			this.#way === 'token'
				? [field('token', 'Token', 'password', 'off', '')]
				: KEYSTONE.map(each => field(...each));
		morph(
			this,
			html`<form class="sign-in" @submit=${(/** @type {SubmitEvent} */ event) => this.#send(event)}>
        <h1 tabindex="-1">Sign in to Ringfence</h1>
        ${this.said && html`<p class="failed" role="alert">${this.said}</p>`}
        ${choices.length > 1 && html`<fieldset class="ways"><legend class="spoken">Way to sign in</legend>${choices}</fieldset>`}
        ${fields}
        <p class="buttons"><button class="primary">Sign in</button></p>
      </form>`,
		);
	}

	/** @param {SubmitEvent} event */
	async #send(event) {
		event.preventDefault();
		const { way: _, ...values } = Object.fromEntries(
			new FormData(/** @type {HTMLFormElement} */ (event.target)),
		);
		const button = this.querySelector('button');
		if (button) button.disabled = true;
		try {
			await signIn(this.#way === 'token' ? { token: String(values.token).trim() } : { keystone: values });
			this.done();
		} catch (error) {
			this.said = why(error);
			this.#draw();
			if (button) button.disabled = false;
			this.#focus();
		}
	}
}
customElements.define('rf-sign-in', SignIn);

/** @type {[name: string, label: string, type: string, fill: string, value: string][]} */
const KEYSTONE = [
	['user', 'User', 'text', 'username', ''],
	['password', 'Password', 'password', 'current-password', ''],
	['project', 'Project', 'text', 'off', ''],
	['user_domain', 'Domain of the user', 'text', 'off', 'Default'],
	['project_domain', 'Domain of the project', 'text', 'off', 'Default'],
];

/** @param {string} name @param {string} label @param {string} type @param {string} fill @param {string} value */
const field = (name, label, type, fill, value) =>
	html`<label data-key=${name}>${label}<input name=${name} type=${type} autocomplete=${fill} .value=${value} required
    autocapitalize="off" spellcheck="false"></label>`;

/** @param {() => void} done @param {string} said */
export const signInView = (done, said) => html`<rf-sign-in .done=${done} .said=${said}></rf-sign-in>`;
