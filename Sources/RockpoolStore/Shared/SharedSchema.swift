// The tables of the shared database (docs/fleet.md#schema).

/// The statements that make the tables. Each may run again.
enum SharedSchema {
    /// The version that this Rockpool writes. A node of another version works beside it as long as the version is the same.
    static let version = 1

    /// The key of the advisory lock that orders the transactions of a fleet: "RPfl".
    static let lockKey = 0x5250_666C

    /// Begins a transaction, whatever the defaults of the server are: it must see what was committed while it waited for the lock, and say
    /// that a commit has not reached the standby.
    static let begin = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL client_min_messages = warning; SET LOCAL lock_timeout = '2s'"

    /// Fixes what the commit waits for until then, whatever the server is told meanwhile: at least its own disk.
    static let durability = """
        SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
            ELSE current_setting('synchronous_commit') END, true)
        """

    /// What tells a server, and the history that it has: its timeline, what its commits survive, the word at `position`, and the first number
    /// of the history.
    static func identity(at position: Int64) -> String {
        """
        SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), current_setting('synchronous_standby_names'),
            current_setting('synchronous_commit'), current_setting('fsync'),
            (SELECT word FROM rockpool.word WHERE n = \(position)), (SELECT min(n) FROM rockpool.word)
        """
    }

    /// Makes this the only transaction that writes.
    static let lock = "SELECT pg_advisory_xact_lock(\(lockKey))"

    /// True if the tables are there.
    static let isMade = """
        SELECT to_regclass('rockpool.word') IS NOT NULL AND EXISTS (
            SELECT FROM pg_attribute WHERE attrelid = to_regclass('rockpool.item') AND attname = 'node')
        """

    /// `item_door`: a client's key names one operation in the fleet. `lane` and `claim`: the operations in flight in one lane belong to one
    /// node; the foreign key refuses another's. A lane keeps its row: a new one for each claim would leave as many old versions under its
    /// key. `item.node` is the node that brought an operation.
    /// `word` is the history of commits: the last number of each, and a random word, by which a node knows the server that it has seen.
    static let creation = """
        CREATE SCHEMA IF NOT EXISTS rockpool;
        CREATE TABLE IF NOT EXISTS rockpool.meta (name text PRIMARY KEY, value text NOT NULL);
        INSERT INTO rockpool.meta VALUES ('version', '\(version)'), ('pruned', '0') ON CONFLICT DO NOTHING;
        CREATE TABLE IF NOT EXISTS rockpool.node (
            id text PRIMARY KEY, name text NOT NULL, epoch bigint NOT NULL, expires timestamptz NOT NULL,
            fenced boolean NOT NULL DEFAULT false, version int NOT NULL, position bigint NOT NULL DEFAULT 0,
            held bigint NOT NULL DEFAULT 0
        );
        CREATE SEQUENCE IF NOT EXISTS rockpool.item_number;
        CREATE TABLE IF NOT EXISTS rockpool.item (
            tbl text NOT NULL, key bytea NOT NULL, part bigint NOT NULL, n bigint NOT NULL, data bytea,
            id text, upstream text, principal text, client_key text, state text, PRIMARY KEY (tbl, key, part)
        ) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
        ALTER TABLE rockpool.item ADD COLUMN IF NOT EXISTS node text;
        CREATE UNIQUE INDEX IF NOT EXISTS item_n ON rockpool.item (n);
        CREATE UNIQUE INDEX IF NOT EXISTS item_id ON rockpool.item (id) WHERE id IS NOT NULL;
        CREATE UNIQUE INDEX IF NOT EXISTS item_door ON rockpool.item (principal, client_key) WHERE client_key IS NOT NULL;
        CREATE INDEX IF NOT EXISTS item_gone ON rockpool.item (n) WHERE data IS NULL;
        CREATE TABLE IF NOT EXISTS rockpool.lane (
            upstream text NOT NULL, lane text NOT NULL, node text NOT NULL,
            PRIMARY KEY (upstream, lane), UNIQUE (upstream, lane, node)
        ) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
        CREATE TABLE IF NOT EXISTS rockpool.claim (
            seq bigint PRIMARY KEY, upstream text NOT NULL, lane text NOT NULL, node text NOT NULL, epoch bigint NOT NULL,
            FOREIGN KEY (upstream, lane, node) REFERENCES rockpool.lane (upstream, lane, node)
        ) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
        CREATE INDEX IF NOT EXISTS claim_lane ON rockpool.claim (upstream, lane);
        CREATE TABLE IF NOT EXISTS rockpool.word (
            n bigint PRIMARY KEY, word bigint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp()
        );
        CREATE TABLE IF NOT EXISTS rockpool.blob (sha bytea NOT NULL, i bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (sha, i));
        """

    /// Records the last change that a server had when the first node used it on this timeline: what a node has seen beyond it, is lost. The
    /// numbers alone do not tell, because those of a promoted server go on after a gap.
    static func mark(_ timeline: Int64) -> String {
        """
        INSERT INTO rockpool.meta SELECT '\(timelinePrefix)\(timeline)', coalesce(max(n), 0)::text FROM rockpool.item ON CONFLICT DO NOTHING
        """
    }

    /// Before the id of a node in the name of its settings. A row of `meta` needs no change of the tables, which only their owner may make.
    static let settingsPrefix = "settings:"

    /// Before the number of a timeline in the name of its mark.
    static let timelinePrefix = "timeline:"

    // MARK: - The statements of a transaction

    /// With what is released, which would be one more round trip while the other nodes wait. A row of another operation is not overwritten: it is
    /// missing in the result then.
    static let shipping = """
        WITH released AS (DELETE FROM rockpool.claim WHERE seq = ANY ($11::bigint[]))
        INSERT INTO rockpool.item (tbl, key, part, n, data, id, upstream, principal, client_key, state, node)
            SELECT tbl, key, part, nextval('rockpool.item_number'), data, id, upstream, principal, client_key, state,
                CASE WHEN id IS NOT NULL THEN $10::text END
            FROM unnest($1::text[], $2::bytea[], $3::bigint[], $4::bytea[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[])
                WITH ORDINALITY AS given (tbl, key, part, data, id, upstream, principal, client_key, state, place)
            ORDER BY place
            ON CONFLICT (tbl, key, part) DO UPDATE SET n = excluded.n, data = excluded.data, id = excluded.id,
                upstream = excluded.upstream, principal = excluded.principal, client_key = excluded.client_key, state = excluded.state
                WHERE item.id IS NULL OR excluded.id IS NULL OR item.id = excluded.id
            RETURNING n
        """

    /// Adds a commit to the history.
    static func word(_ word: Int64, at number: Int64) -> String { "INSERT INTO rockpool.word (n, word) VALUES (\(number), \(word))" }

    static let releasing = """
        DELETE FROM rockpool.claim WHERE seq = ANY ($1::bigint[])
        """

    /// Removes everything, and refuses the replicas of it from then on.
    static let emptying = [
        "TRUNCATE rockpool.item, rockpool.blob, rockpool.claim, rockpool.lane, rockpool.word",
        "UPDATE rockpool.meta SET value = nextval('rockpool.item_number')::text WHERE name = 'pruned'",
        "DELETE FROM rockpool.meta WHERE name IN ('moved', 'returned')",
    ]

    static let replacing = "DELETE FROM rockpool.item WHERE tbl = 'total' AND part = 0 AND key = ANY ($1::bytea[])"

    static let claiming = """
        WITH given AS (
            SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[]) AS t (seq, upstream, lane, node, epoch)
        ), taken AS (
            INSERT INTO rockpool.lane SELECT DISTINCT upstream, lane, node FROM given
                ON CONFLICT (upstream, lane) DO UPDATE SET node = excluded.node WHERE lane.node <> excluded.node
        )
        INSERT INTO rockpool.claim SELECT * FROM given
            ON CONFLICT (seq) DO UPDATE SET upstream = excluded.upstream, lane = excluded.lane, node = excluded.node, epoch = excluded.epoch
        """

    /// The operations in flight whose node is fenced, gone, or has begun anew since.
    static let abandoned = """
        SELECT seq FROM rockpool.claim LEFT JOIN rockpool.node ON node.id = claim.node
            WHERE node.id IS NULL OR node.fenced OR node.epoch <> claim.epoch ORDER BY seq
        """
}
