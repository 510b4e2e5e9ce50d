"""A second opinion inside the database: triggers that know the transition table and refuse everything else.

They are generated from `core.states`, written without looking at the store's SQL, and keep a journal of every step a
task took. A store that broke the state machine, lowered a claim number, handed one out twice or accepted a second
outcome in one run gets an error, and the test that provoked it fails.
"""

from headrace.core.states import TERMINAL, TRANSITIONS

_STEPS = ", ".join(f"('{before}', '{after}')" for before, all_after in TRANSITIONS.items() for after in all_after)
_TERMINAL = ", ".join(f"'{state}'" for state in TERMINAL)
# Rows are rewritten without a change of state (progress, a later eligible time): those are no steps.
_FIRST = "('pending', 'blocked', 'pending_approval')"

# Of the same meaning: `last` is where the guard saw the task; a row that enters history is compared with that, because
# the live row may be gone by then.
SQLITE = f"""
CREATE TABLE guard_steps (before TEXT, after TEXT, PRIMARY KEY (before, after));
INSERT INTO guard_steps VALUES {_STEPS};
CREATE TABLE guard_last (task INTEGER PRIMARY KEY, state TEXT, claim_no INTEGER, run_no INTEGER);
CREATE TABLE guard_journal (
    step INTEGER PRIMARY KEY AUTOINCREMENT, task INTEGER, before TEXT, after TEXT, claim_no INTEGER, run_no INTEGER,
    worker TEXT
);
CREATE UNIQUE INDEX guard_one_claim ON guard_journal (task, claim_no) WHERE after = 'claimed';
CREATE UNIQUE INDEX guard_one_outcome ON guard_journal (task, run_no) WHERE after IN ({_TERMINAL});

CREATE TRIGGER guard_insert AFTER INSERT ON headrace_tasks BEGIN
    SELECT RAISE(ABORT, 'guard: a new task must not be held or over') WHERE NEW.state NOT IN {_FIRST};
    SELECT RAISE(ABORT, 'guard: the task exists already in this run')
        FROM guard_last WHERE task = NEW.id AND run_no >= NEW.run_no;
    SELECT RAISE(ABORT, 'guard: the claim number fell')
        FROM guard_last WHERE task = NEW.id AND claim_no > NEW.claim_no;
    INSERT INTO guard_journal (task, before, after, claim_no, run_no, worker)
        VALUES (NEW.id, NULL, NEW.state, NEW.claim_no, NEW.run_no, NEW.worker);
    INSERT OR REPLACE INTO guard_last VALUES (NEW.id, NEW.state, NEW.claim_no, NEW.run_no);
END;
CREATE TRIGGER guard_update AFTER UPDATE ON headrace_tasks
WHEN NEW.state <> OLD.state OR NEW.claim_no <> OLD.claim_no OR NEW.run_no <> OLD.run_no BEGIN
    SELECT RAISE(ABORT, 'guard: not a transition')
        WHERE NEW.state <> OLD.state
        AND NOT EXISTS (SELECT 1 FROM guard_steps WHERE before = OLD.state AND after = NEW.state);
    SELECT RAISE(ABORT, 'guard: the claim number fell') WHERE NEW.claim_no < OLD.claim_no;
    SELECT RAISE(ABORT, 'guard: a claim without a new number')
        WHERE NEW.state = 'claimed' AND OLD.state <> 'claimed' AND NEW.claim_no <= OLD.claim_no;
    SELECT RAISE(ABORT, 'guard: the run changed without an end') WHERE NEW.run_no <> OLD.run_no;
    INSERT INTO guard_journal (task, before, after, claim_no, run_no, worker)
        VALUES (NEW.id, OLD.state, NEW.state, NEW.claim_no, NEW.run_no, NEW.worker);
    INSERT OR REPLACE INTO guard_last VALUES (NEW.id, NEW.state, NEW.claim_no, NEW.run_no);
END;
CREATE TRIGGER guard_end AFTER INSERT ON headrace_history BEGIN
    SELECT RAISE(ABORT, 'guard: history takes only what is over') WHERE NEW.state NOT IN ({_TERMINAL});
    SELECT RAISE(ABORT, 'guard: an end that does not follow')
        WHERE NOT EXISTS (
            SELECT 1 FROM guard_last AS l JOIN guard_steps AS s ON s.before = l.state AND s.after = NEW.state
            WHERE l.task = NEW.id AND l.run_no = NEW.run_no AND l.claim_no <= NEW.claim_no
        );
    INSERT INTO guard_journal (task, before, after, claim_no, run_no, worker)
        SELECT NEW.id, state, NEW.state, NEW.claim_no, NEW.run_no, NEW.worker FROM guard_last WHERE task = NEW.id;
    INSERT OR REPLACE INTO guard_last VALUES (NEW.id, NEW.state, NEW.claim_no, NEW.run_no);
END;
"""

POSTGRES = f"""
-- A schema of its own: a user called like the app would put unqualified names into the app's.
CREATE SCHEMA guard;
CREATE TABLE guard.steps (before text, after text, PRIMARY KEY (before, after));
INSERT INTO guard.steps VALUES {_STEPS};
CREATE TABLE guard.last (task bigint PRIMARY KEY, state text, claim_no integer, run_no integer);
CREATE TABLE guard.journal (
    step bigserial PRIMARY KEY, task bigint, before text, after text, claim_no integer, run_no integer, worker text
);
CREATE UNIQUE INDEX guard_one_claim ON guard.journal (task, claim_no) WHERE after = 'claimed';
CREATE UNIQUE INDEX guard_one_outcome ON guard.journal (task, run_no) WHERE after IN ({_TERMINAL});

CREATE FUNCTION guard.insert() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    last guard.last;
BEGIN
    SELECT * INTO last FROM guard.last WHERE task = NEW.id;
    -- An enqueue may hand its task to an idle worker: then its first claim is as old as the task.
    IF NEW.state NOT IN {_FIRST} AND NOT (NEW.state = 'claimed' AND NEW.claim_no = 1 AND NEW.worker IS NOT NULL) THEN
        RAISE EXCEPTION 'guard: new task % must not be held or over: %', NEW.id, NEW.state;
    ELSIF last.run_no >= NEW.run_no THEN
        RAISE EXCEPTION 'guard: task % exists already in run %', NEW.id, NEW.run_no;
    ELSIF last.claim_no > NEW.claim_no THEN
        RAISE EXCEPTION 'guard: the claim number of task % fell', NEW.id;
    END IF;
    INSERT INTO guard.journal (task, before, after, claim_no, run_no, worker)
        VALUES (NEW.id, NULL, NEW.state, NEW.claim_no, NEW.run_no, NEW.worker);
    INSERT INTO guard.last VALUES (NEW.id, NEW.state, NEW.claim_no, NEW.run_no)
        ON CONFLICT (task) DO UPDATE
        SET (state, claim_no, run_no) = (excluded.state, excluded.claim_no, excluded.run_no);
    RETURN NULL;
END $$;
CREATE FUNCTION guard.update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state <> OLD.state
        AND NOT EXISTS (SELECT 1 FROM guard.steps WHERE before = OLD.state AND after = NEW.state) THEN
        RAISE EXCEPTION 'guard: task % must not go from % to %', NEW.id, OLD.state, NEW.state;
    ELSIF NEW.claim_no < OLD.claim_no THEN
        RAISE EXCEPTION 'guard: the claim number of task % fell', NEW.id;
    ELSIF NEW.state = 'claimed' AND OLD.state <> 'claimed' AND NEW.claim_no <= OLD.claim_no THEN
        RAISE EXCEPTION 'guard: task % was claimed without a new number', NEW.id;
    ELSIF NEW.run_no <> OLD.run_no THEN
        RAISE EXCEPTION 'guard: the run of task % changed without an end', NEW.id;
    END IF;
    INSERT INTO guard.journal (task, before, after, claim_no, run_no, worker)
        VALUES (NEW.id, OLD.state, NEW.state, NEW.claim_no, NEW.run_no, NEW.worker);
    UPDATE guard.last SET (state, claim_no) = (NEW.state, NEW.claim_no) WHERE task = NEW.id;
    RETURN NULL;
END $$;
CREATE FUNCTION guard.end() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    last guard.last;
BEGIN
    SELECT * INTO last FROM guard.last WHERE task = NEW.id;
    IF last IS NULL OR last.run_no <> NEW.run_no OR last.claim_no > NEW.claim_no OR NOT EXISTS (
        SELECT 1 FROM guard.steps WHERE before = last.state AND after = NEW.state) THEN
        RAISE EXCEPTION 'guard: task % must not end as % (claim %, run %) after %',
            NEW.id, NEW.state, NEW.claim_no, NEW.run_no, last;
    END IF;
    INSERT INTO guard.journal (task, before, after, claim_no, run_no, worker)
        VALUES (NEW.id, last.state, NEW.state, NEW.claim_no, NEW.run_no, NEW.worker);
    UPDATE guard.last SET (state, claim_no) = (NEW.state, NEW.claim_no) WHERE task = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER guard_insert AFTER INSERT ON headrace.tasks FOR EACH ROW EXECUTE FUNCTION guard.insert();
CREATE TRIGGER guard_update AFTER UPDATE ON headrace.tasks FOR EACH ROW
    WHEN (NEW.state <> OLD.state OR NEW.claim_no <> OLD.claim_no OR NEW.run_no <> OLD.run_no)
    EXECUTE FUNCTION guard.update();
CREATE TRIGGER guard_end AFTER INSERT ON headrace.history FOR EACH ROW EXECUTE FUNCTION guard.end();
"""
