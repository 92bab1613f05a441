/** Who is signed in, and what that role may do. */

/** @type {Api.Role[]} */
const RANKS = ['reader', 'service', 'operator', 'admin'];

/** @type {{ current: Api.Session | null }} */
export const session = { current: null };

/** @param {Api.Role} role */
export const may = role =>
	session.current !== null && RANKS.indexOf(session.current.role) >= RANKS.indexOf(role);
