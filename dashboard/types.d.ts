/** What the API answers, as far as the page reads it. The description of every call is in `openapi/`. */
declare namespace Api {
	type Failure = 'UP' | 'UNREACHABLE' | 'UNKNOWN';
	type Fencing = 'FENCED' | 'UNFENCED';
	type Status = 'running' | 'held' | 'needs_operator' | 'succeeded' | 'cancelled';
	type Kind = 'fence' | 'rejoin' | 'evacuation';
	type Role = 'reader' | 'service' | 'operator' | 'admin';

	interface Session {
		id: string;
		actor: string;
		role: Role;
		signed_in_at: string;
		expires_at: string;
		address?: string;
		is_current: boolean;
	}
	interface LiveOperation {
		id: string;
		kind: Kind;
		status: Status;
	}
	interface CompactHost {
		name: string;
		failure_state: Failure;
		failure_since?: string | null;
		fencing_state: Fencing;
		operation?: LiveOperation | null;
		marks?: string[];
	}
	interface CompactSegment {
		id: string;
		name: string;
		is_automatic: boolean;
		is_suspended: boolean;
		hosts: CompactHost[];
	}
	interface Overview {
		sequence: number;
		at: string;
		segments: CompactSegment[];
	}
	interface Ended {
		by: string;
		at: string;
	}
	interface Proof {
		kind: string;
		source: string;
		observed_at: string;
		operation_id: string;
		detail: string;
		ended?: Ended | null;
	}
	interface Source {
		name: string;
		state: Failure;
		observed_at: string;
		alive_at?: string | null;
		boot_id?: string | null;
	}
	interface Condition {
		source: string;
		name: string;
		status: string;
		since: string;
		reason: string;
		action?: string | null;
	}
	interface Suspension {
		by: string;
		reason: string;
		since: string;
		until?: string | null;
	}
	interface Alarm {
		problem: string;
		condition?: string | null;
		since: string;
		times: number;
		within_s: number;
	}
	interface Applied {
		kind: string;
		method: string;
		confirmed?: boolean | null;
	}
	interface Host {
		id: string;
		name: string;
		segment: string;
		backend: string;
		cloud?: string | null;
		known_as?: string | null;
		type?: string | null;
		zone: string;
		labels: Record<string, string>;
		failure_state: Failure;
		failure_source?: string | null;
		failure_since?: string | null;
		boot_id?: string | null;
		sources: Source[];
		conditions?: Condition[];
		suspension?: Suspension | null;
		quarantined_at?: string | null;
		alarms?: Alarm[];
		kdump?: { since: string; last_message_at: string; is_over: boolean } | null;
		fencing_state: Fencing;
		generation: number;
		fenced_at?: string | null;
		needs_boot: boolean;
		proof_ended?: Ended | null;
		proofs: Proof[];
		applied_fencing: Applied[];
		operation?: LiveOperation | null;
		updated_at: string;
	}
	interface Ruling {
		safeguard: string;
		verdict: string;
		reason: string;
		release?: string | null;
	}
	interface Attempt {
		number: number;
		level?: number | null;
		method: string;
		driver: string;
		worker?: string | null;
		status: string;
		outcome?: string | null;
		observation?: { state: string; detail: string; observed_at: string; proves?: boolean | null } | null;
		detail?: string | null;
		started_at: string;
		claimed_at?: string | null;
		ended_at?: string | null;
	}
	interface Task {
		kind: string;
		status: string;
		workload?: string | null;
		detail?: string | null;
		levels: string[][];
		attempts: Attempt[];
	}
	interface Stage {
		delay_s: number;
		started_at?: string | null;
		tasks: Task[];
	}
	interface Operation {
		id: string;
		host_id: string;
		host?: string | null;
		kind: Kind;
		status: Status;
		detail: string;
		generation: number;
		reason: string;
		requested_by: string;
		plan?: string | null;
		is_held_by_brake: boolean;
		held?: { by: Ruling[]; looked_at: string; since: string } | null;
		round: number;
		restart_at?: string | null;
		proofs: Proof[];
		stages: Stage[];
		revision: number;
		created_at: string;
		updated_at: string;
		finished_at?: string | null;
	}
	interface Move {
		id: string;
		name: string;
		status: string;
		state: string;
		from?: string | null;
		to?: string | null;
		detail?: string | null;
		attempts: number;
		started_at?: string | null;
		ended_at?: string | null;
	}
	interface Gate {
		allowed: boolean;
		reason: string;
	}
	interface Gates {
		schedule: Gate;
		evacuate: Gate;
		generation: number;
	}
	interface LastCheck {
		age_s: number;
		checked_at: string;
		outcome: string;
		state?: string | null;
		detail?: string | null;
		took_ms?: number | null;
	}
	interface ResolvedMethod {
		name: string;
		driver?: string | null;
		zone?: string | null;
		hindrances: string[];
		last_check?: LastCheck | null;
		last_time?: { outcome: string; took_ms: number; waited_ms: number; ended_at: string } | null;
	}
	interface ResolvedTask {
		kind: string;
		levels: { level: number; methods: ResolvedMethod[] }[];
	}
	interface ResolvedPlan {
		name: string;
		scope: { kind: string; value?: string | null };
		stages: { delay_s: number; tasks: ResolvedTask[] }[];
	}
	interface SetProspect {
		can_be_completed: boolean;
		needs_person: boolean;
		proofs: { kind: string; due_at?: string | null; hindrances: string[] }[];
	}
	interface Preview {
		verdict: {
			outcome: string;
			status: number;
			code?: string | null;
			title?: string | null;
			detail: string;
			operation_id?: string | null;
		};
		begins_with: { kind: string; by: string }[];
		gates_after: Gates;
		gates_once_fenced?: Gates | null;
		plan?: ResolvedPlan | null;
		safeguards: Ruling[];
		storm_brake: {
			is_automatic: boolean;
			would_hold: boolean;
			reason?: string | null;
			due_at?: string | null;
		};
		sufficient_sets: SetProspect[];
		last_fence?: { operation_id: string; began_at: string; proven_after_ms: number } | null;
	}
	interface Explanation {
		host: Host;
		gates: Gates;
		fence: Preview;
		seen: { because: string; failure_state: Failure; source?: string | null; until?: string | null };
		waits_for?: string | null;
		left_at?: string | null;
	}
	interface Event {
		sequence: number;
		id: string;
		type: string;
		host?: string | null;
		host_id?: string | null;
		segment?: string | null;
		generation?: number | null;
		occurred_at: string;
		// biome-ignore lint/suspicious/noExplicitAny: each type of events has data of its own
		data: Record<string, any>;
	}
	interface Method {
		id: string;
		name: string;
		resource: string;
		driver: string;
		zone?: string | null;
		parameters: Record<string, string>;
		secrets: Record<string, string>;
		times: Record<string, number | null>;
		checks?: {
			outcome?: string | null;
			targets: number;
			answered: number;
			failing: number;
			failing_since?: string | null;
			last_checked_at?: string | null;
			age_s?: number | null;
		} | null;
	}
	interface Subscription {
		id: string;
		name: string;
		description: string;
		url: string;
		format: string;
		types: string[];
		segments: string[];
		hosts: string[];
		after: number;
		enabled: boolean;
		disabled_reason?: string | null;
		retrying: number;
	}
	interface Check {
		id: string;
		host?: string | null;
		outcome?: string | null;
		state?: string | null;
		detail?: string | null;
		worker?: string | null;
		took_ms?: number | null;
		checked_at?: string | null;
		failing_since?: string | null;
		next_at: string;
	}
	interface Delivery {
		id: string;
		kind: string;
		sequence?: number | null;
		event_type: string;
		host?: string | null;
		status: string;
		tries: number;
		created_at: string;
		next_at?: string | null;
		answer?: number | null;
		detail?: string | null;
		took_ms?: number | null;
	}
	interface Level {
		level: number;
		methods: string[];
	}
	interface Plan {
		id: string;
		name: string;
		scope: { kind: 'default' | 'host_type' | 'host'; value?: string | null };
		stages: { delay_s: number; tasks: { kind: string; levels: Level[] }[] }[];
		sufficient_sets: string[][];
	}
	interface Segment {
		id: string;
		name: string;
		description: string;
		// biome-ignore lint/suspicious/noExplicitAny: it is shown whatever it holds
		policy: Record<string, any>;
	}
	interface SuspendedOne {
		id: string;
		name: string;
		suspension: Suspension;
	}
	interface Suspended {
		everything?: Suspension | null;
		hosts: SuspendedOne[];
		segments: SuspendedOne[];
	}
	interface Services {
		engines: { name: string; seen_at: string }[];
		workers: { zone: string; resource: string; queued: number | null; workers: number | null }[];
	}
	interface DemoHost {
		name: string;
		condition: string;
		powered: boolean;
		may_write: boolean;
		devices: Record<string, { fault?: { kind: string } | null; state: string }>;
	}
	interface Demo {
		hosts: DemoHost[];
	}
	interface Audit {
		id: number;
		at: string;
		actor: string;
		action: string;
		target?: string | null;
		host_id?: string | null;
		origin?: string | null;
		request_id?: string | null;
		// biome-ignore lint/suspicious/noExplicitAny: each action has particulars of its own
		detail: Record<string, any>;
	}
	interface Link {
		rel: string;
		href: string;
	}
}

/** What the modules of the page hand to each other. */
type Child = Node | string | number | null | undefined | false | readonly Child[];
type Answer<T> = { body: T; etag: string | null; location: string | null };
/** The kinds of cells, by what matters first. */
type CellKind = 'needs' | 'lapsed' | 'silent' | 'held' | 'work' | 'back' | 'fenced' | 'unknown' | 'up';
type SiteHost = Api.CompactHost & { segment: string };
type SiteSegment = Omit<Api.CompactSegment, 'hosts'>;
/** How a call is sent. `key`: an Idempotency-Key; a POST gets one of its own. */
type Sent = { ifMatch?: string | null; key?: string; signal?: AbortSignal };
/** What decides which cell a host has. */
type Stated = {
	failure_state: Api.Failure;
	fencing_state: Api.Fencing;
	operation?: Api.LiveOperation | null;
	marks?: string[];
	proof_ended?: unknown;
};
/** A segment on the map, and where a cell is. */
type Block = { box: HTMLElement; canvas: HTMLCanvasElement; hosts: SiteHost[]; columns: number };
type Spot = [block: number, index: number];
/** What hosts need that no operation holds. */
type HostNeed = { kind: CellKind; told: string; why: string; todo: string; label: string; act: HostAsk };
type After = () => void;
type HostAsk = (hosts: readonly Api.Host[], after?: After) => void;
type PauseAsk = (targets: readonly Suspendable[], after?: After) => void;
type OperationAsk = (operations: readonly Api.Operation[], after?: After) => void;

/** Something that a person may do. */
interface Action {
	label: string;
	run: () => void;
	isMain?: boolean;
}
/** What can be suspended. */
interface Suspendable {
	name: string;
	path: string;
	what: string;
}
/** One thing that needs a person. */
interface Need {
	key: string;
	kind: CellKind;
	title: string;
	why: string;
	todo: string;
	href: string;
	since?: string;
	actions: Action[];
}

/** What was filled in; a tick is `yes`. */
type Values = Record<string, string>;
interface Field {
	name: string;
	label: string;
	kind?: 'text' | 'check' | 'choice';
	choices?: [value: string, label: string][];
}
/** What a dialog asks. */
interface Asking<T> {
	title: string;
	/** On the button. */
	verb: string;
	targets: readonly T[];
	name: (target: T) => string;
	/** What it does. */
	about: Child;
	/** Shows more, and says whether it can be done. */
	prepare?: (place: HTMLElement, signal: AbortSignal) => Promise<boolean>;
	/** What has to be typed before. */
	typed?: string;
	fields?: Field[];
	isDangerous?: boolean;
	/** Takes no reason. */
	isPlain?: boolean;
	/** Says what it came to. */
	act: (target: T, values: Values) => Promise<Child>;
	/** Looks again after a change. */
	again?: () => void;
	/** When the dialog closes and something was done. */
	after?: After;
}

interface Column<Row> {
	head: string;
	/** `of`: what the list names so. */
	// biome-ignore lint/suspicious/noExplicitAny: answers of any call
	cell: (row: Row, of: any[]) => Child;
	/** The API's sort key. */
	sort?: string;
	/** Takes what room is left. */
	isWide?: boolean;
}
/** A list of the API. */
interface List<Row> {
	/** As the rows if absent. */
	title?: string;
	/** Of the API; its last part names the rows. It may have a query of its own. */
	path: string;
	/** A field of the row, or more than that. */
	columns: (string | Column<Row>)[];
	/** Parameters of the API: `host`; `kind=fence,rejoin` with choices; `segment=` with those that there are. */
	filters?: string[];
	/** For selected rows. */
	actions?: (rows: Row[], again: After) => Action[];
	/** What is read with it: what the rows belong to. The list's own answer comes last. */
	of?: string[];
	/** Stands above the rows. */
	// biome-ignore lint/suspicious/noExplicitAny: answers of any call
	about?: (of: any[], again: After) => Child;
	/** What the rows are, below it. */
	head?: string;
}
/** What is behind the first part of an address below `/dashboard`. */
interface Place {
	title: string;
	list: () => HTMLElement;
	/** What is behind one row. */
	one?: (name: string) => HTMLElement;
	isForAdmins?: boolean;
	/** Is not in the navigation. */
	isApart?: boolean;
}
