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
		url: string;
		enabled: boolean;
		disabled_reason?: string | null;
		retrying: number;
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
		workers: { zone: string; resource: string; queued: number; workers: number }[];
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
	/** Says what it came to. */
	act: (target: T, values: Values) => Promise<Child>;
	/** Looks again after a change. */
	again?: () => void;
	/** When the dialog closes and something was done. */
	after?: After;
}

interface Filter {
	/** The API's parameter. */
	name: string;
	label: string;
	/** A free text that the API understands, such as `in:a,b`, if absent. */
	kind?: 'text' | 'choice' | 'time';
	choices?: [value: string, label: string][] | (() => Promise<[string, string][]>);
	/** For the empty field. */
	hint?: string;
}
interface Column<Row> {
	head: string;
	cell: (row: Row) => Child;
	/** The API's sort key. */
	sort?: string;
	/** Takes what room is left. */
	isWide?: boolean;
}
/** A list of the API. */
interface List<Row> {
	title: string;
	/** Of the API; it may have a query of its own. */
	path: string;
	/** Under which key of the answer the rows are. */
	rows: string;
	key: (row: Row) => string;
	columns: Column<Row>[];
	filters?: Filter[];
	/** What is said where there are none. */
	empty: string;
	/** What a row is, as in `1 host`. */
	one?: string;
	/** For selected rows. */
	actions?: (rows: Row[], again: After) => Action[];
	/** Whether an event may have changed the list. */
	moves?: (event: Api.Event) => boolean;
	/** Stands above the list. */
	about?: Child;
	/** Stands beside the title. */
	tools?: (again: After) => Child;
}
/** What is behind the first part of an address below `/dashboard`. */
interface Place {
	title: string;
	list: () => HTMLElement;
	/** What is behind one row. */
	one?: (name: string) => HTMLElement;
	isForAdmins?: boolean;
}
