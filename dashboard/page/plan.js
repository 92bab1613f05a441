/** A fence as a drawing: its stages, their tasks, and the sets that prove it. */

import { html } from './dom.js';
import { linkTo, words } from './parts.js';
import { mark, sign } from './shapes.js';
import { span, time } from './time.js';
import { capital } from './words.js';

/** @param {Api.Explanation} explanation */
export function drawFence({ fence: { verdict, plan, begins_with, sufficient_sets, last_fence } }) {
	const isRefused = verdict.outcome === 'refused';
	const last =
		last_fence &&
		html`<p class="quiet">Its last fence was proven after ${span(last_fence.proven_after_ms)}, ${time(last_fence.began_at, 'ago')}.</p>`;
	return html`<div>
    <p class=${isRefused && 'warn'}>${isRefused && html`<b>Refused.</b>`} ${capital(verdict.detail)}.</p>
    ${plan ? drawPlan(plan, begins_with) : html`<p class="warn">No plan applies to this host.</p>`}
    <ul class="sets" aria-label="Sufficient sets">${sufficient_sets.map(drawSet)}</ul>
    ${last}
  </div>`;
}

/** @param {Pick<Api.ResolvedPlan, 'name' | 'stages'>} plan @param {{ kind: string, by: string }[]} first what begins at once */
export const drawPlan = ({ name, stages }, first) =>
	html`<ol class="plan" aria-label="Plan ${name}">
    ${stages.map(
			({ delay_s, tasks }, i) => html`<li>
        <small>stage ${i + 1}${delay_s > 0 && `, after ${delay_s} s`}</small>
        ${tasks.map(task => drawTask(task, first))}
      </li>`,
		)}
    <li class="end"><b>FENCED</b><small>by the first set that is complete</small></li>
  </ol>`;

/** @param {Api.ResolvedTask} task @param {{ kind: string, by: string }[]} first */
function drawTask({ kind, levels }, first) {
	const isFirst = first.some(each => each.kind === kind);
	const shown = levels.map(
		({ level, methods }) =>
			html`<ul>${levels.length > 1 && html`<li><small>level ${level}</small></li>`}${methods.map(drawMethod)}</ul>`,
	);
	return html`<div class="task ${isFirst ? 'first' : ''}"><b>${kind}</b>${isFirst && html`<small> at once</small>`}${shown}</div>`;
}

/** @param {Api.ResolvedMethod} method */
function drawMethod({ name, driver, hindrances, last_check: check, last_time: last }) {
	const outcome = hindrances.length > 0 ? 'failed' : (check?.outcome ?? 'none');
	const answer = check
		? [check.state ?? check.outcome.replace('_', ' '), ' ', time(check.checked_at, 'ago')]
		: 'never asked';
	const took = last && `, took ${span(last.took_ms)} last time`;
	return html`<li>${mark(outcome)}<span>${linkTo('methods', name)}<small>${driver}, ${answer}${took}</small>${hindrances.map(words)}</span></li>`;
}

/** @param {Api.SetProspect} set */
function drawSet({ proofs, can_be_completed, needs_person }) {
	const state = can_be_completed ? (needs_person ? 'needs_operator' : 'confirmed') : 'failed';
	const told = can_be_completed ? (needs_person ? 'by a person' : 'can be completed') : 'cannot be completed';
	const kinds = proofs.map(({ kind }) => kind).join(' + ');
	return html`<li>${sign(state, kinds)} <small>${told}</small>${proofs.flatMap(({ hindrances }) => hindrances.map(words))}</li>`;
}
