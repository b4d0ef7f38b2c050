package reference

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	_ "modernc.org/sqlite" // the "sqlite" driver, in pure Go

	"relaybench/corpus"
)

// sqliteStore keeps events in a table with indexes for what filters ask for, and single-letter tags
// in another (sqlitescan.go reads them). One connection writes a group in a transaction, a pool of
// others reads beside it: the journal is a write-ahead log.
type sqliteStore struct {
	onDisk
	write, read *statements
}

// Every index ends in the order of an answer. A tag is the hash of its name and value (tagHash):
// what is found by it is a candidate, and matched against the whole filter.
const sqliteSchema = `
CREATE TABLE IF NOT EXISTS events (
	seq        INTEGER PRIMARY KEY,
	id         BLOB NOT NULL,
	pubkey     BLOB NOT NULL,
	created_at INTEGER NOT NULL,
	kind       INTEGER NOT NULL,
	event      BLOB NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS events_by_id ON events (id);
CREATE INDEX IF NOT EXISTS events_by_time ON events (created_at DESC, id);
CREATE INDEX IF NOT EXISTS events_by_kind ON events (kind, created_at DESC, id);
CREATE INDEX IF NOT EXISTS events_by_author ON events (pubkey, created_at DESC, id);
CREATE INDEX IF NOT EXISTS events_by_author_and_kind ON events (pubkey, kind, created_at DESC, id);
CREATE TABLE IF NOT EXISTS tags (
	tag        INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	id         BLOB NOT NULL,
	kind       INTEGER NOT NULL,
	pubkey     BLOB NOT NULL,
	seq        INTEGER NOT NULL,
	PRIMARY KEY (tag, created_at DESC, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS notes (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
`

func openSQLite(dir string, d Durability) (Store, error) {
	path := filepath.Join(dir, "events.sqlite")
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the sqlite store %s: %w", path, err)
	}
	synchronous := map[Durability]string{DurabilityCommit: "FULL", DurabilityBatch: "NORMAL", DurabilityNone: "OFF"}[d]
	s := &sqliteStore{
		write: openStatements(path, 1, "journal_mode(WAL)", "synchronous("+synchronous+")", "wal_autocheckpoint(4000)"),
		read:  openStatements(path, max(4, 2*runtime.GOMAXPROCS(0)), "query_only(1)"),
	}
	s.close = sync.OnceValue(func() error { // readers first: the last to close checkpoints the log
		return errors.Join(s.read.db.Close(), s.write.db.Close(), lock.Close())
	})
	if err := s.prepare(); err != nil {
		return nil, fmt.Errorf("opening the sqlite store %s: %w", path, errors.Join(err, s.close()))
	}
	return s, nil
}

// lockFolder keeps other processes out of a store's folder for as long as the file that it returns
// is open: the relay numbers events, and holds the set that it reconciles, in memory. bbolt locks
// its file itself.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(time.Second); ; time.Sleep(20 * time.Millisecond) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		busy := errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR)
		switch {
		case err == nil:
			return f, nil
		case busy && time.Now().Before(deadline):
			continue
		case busy:
			err = errOpenElsewhere
		}
		return nil, errors.Join(err, f.Close())
	}
}

func (s *sqliteStore) prepare() error {
	var old, last int64
	err := s.write.db.QueryRow(`SELECT count(*) FROM sqlite_schema WHERE name = 'segments'`).Scan(&old)
	if err == nil && old > 0 {
		err = errOldFormat
	}
	if err == nil {
		_, err = s.write.db.Exec(sqliteSchema)
	}
	if err == nil {
		err = s.write.db.QueryRow(`SELECT coalesce(max(seq), 0) FROM events`).Scan(&last)
	}
	s.lastSeq.Store(uint64(last))
	return err
}

// View reads without a transaction: each statement sees one state.
func (s *sqliteStore) View(read func(View) error) error {
	v := &sqliteTx{on: s.read}
	err := read(v)
	return cmp.Or(v.err, err)
}

// Update commits a group in one transaction.
func (s *sqliteStore) Update(change func(Tx) error) error {
	if _, err := s.write.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	tx := &sqliteTx{on: s.write}
	err := change(tx)
	if err = cmp.Or(tx.err, err); err == nil {
		_, err = s.write.exec(`COMMIT`)
	}
	if err != nil {
		// SQLite has rolled back already where the disk was full, and then refuses to do so again.
		_, _ = s.write.exec(`ROLLBACK`)
		return err
	}
	if tx.lastSeq > 0 {
		s.lastSeq.Store(tx.lastSeq)
	}
	return nil
}

// sqliteTx writes in the one transaction there is, or only reads.
type sqliteTx struct {
	trouble
	on      *statements
	lastSeq uint64
}

// exec returns how many rows changed.
func (t *sqliteTx) exec(text string, args ...any) (changed int64) {
	if t.err == nil {
		n, err := t.on.exec(text, args...)
		t.failed(err)
		changed = n
	}
	return changed
}

// scan reads rows of any kind.
func (t *sqliteTx) scan(text string, args []any, into ...any) {
	if t.err == nil {
		t.failed(t.on.query(text, args, func(rows *sql.Rows) error { return rows.Scan(into...) }))
	}
}

// records reads rows of a number and an event.
func (t *sqliteTx) records(text string, args ...any) (list []Record) {
	if t.err != nil {
		return nil
	}
	err := t.on.query(text, args, func(rows *sql.Rows) error {
		var seq int64
		var raw []byte
		if err := rows.Scan(&seq, &raw); err != nil {
			return err
		}
		r, err := parseRecord(uint64(seq), raw)
		list = append(list, r)
		return err
	})
	if t.failed(err) {
		return nil
	}
	return list
}

func (t *sqliteTx) Find(id corpus.ID) (r Record, ok bool) {
	if found := t.records(`SELECT seq, event FROM events WHERE id = ?`, id[:]); len(found) > 0 {
		return found[0], true
	}
	return r, false
}

func (t *sqliteTx) Insert(r *Record) (inserted bool) {
	n := t.exec(`INSERT INTO events (seq, id, pubkey, created_at, kind, event) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
		int64(r.Seq), r.ID[:], r.PubKey[:], r.CreatedAt, r.Kind, r.Raw)
	if n == 0 {
		return false
	}
	t.lastSeq = r.Seq
	if tags := tagList(r); len(tags) > 2 {
		t.exec(`INSERT OR IGNORE INTO tags (tag, created_at, id, kind, pubkey, seq) SELECT value, ?, ?, ?, ?, ? FROM json_each(?)`,
			r.CreatedAt, r.ID[:], r.Kind, r.PubKey[:], int64(r.Seq), tags)
	}
	return true
}

func (t *sqliteTx) Remove(r *Record) {
	for _, gone := range t.records(`DELETE FROM events WHERE seq = ? AND id = ? RETURNING seq, event`, int64(r.Seq), r.ID[:]) {
		t.exec(`DELETE FROM tags WHERE tag IN (SELECT value FROM json_each(?)) AND created_at = ? AND id = ?`, tagList(&gone), r.CreatedAt, r.ID[:])
	}
}

func (t *sqliteTx) Note(key []byte) (value []byte) {
	t.scan(`SELECT value FROM notes WHERE key = ?`, []any{key}, &value)
	return value
}

func (t *sqliteTx) SetNote(key, value []byte) {
	t.exec(`INSERT INTO notes (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`, key, value)
}

// tagList writes an event's tags as a JSON array, [] where it has none.
func tagList(r *Record) string {
	var tags []int64
	for name, value := range r.indexedTags() {
		tags = append(tags, int64(tagHash(name, value)))
	}
	return jsonList(tags, appendInt)
}

// statements are connections on which every text is prepared once.
type statements struct {
	db       *sql.DB
	mu       sync.Mutex
	prepared map[string]*sql.Stmt
}

// openStatements opens no connection yet: what is wrong shows with the first statement.
func openStatements(path string, conns int, pragmas ...string) *statements {
	values := url.Values{"_pragma": append(pragmas, "busy_timeout(5000)", "temp_store(MEMORY)", "cache_size(-32768)", "mmap_size(1073741824)")}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: values.Encode()}).String())
	if err != nil {
		panic(err) // the driver is not registered
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return &statements{db: db, prepared: map[string]*sql.Stmt{}}
}

func (s *statements) prepare(text string) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stmt, err := s.prepared[text], error(nil)
	if stmt == nil {
		if stmt, err = s.db.Prepare(text); err == nil {
			s.prepared[text] = stmt
		}
	}
	return stmt, err
}

func (s *statements) exec(text string, args ...any) (changed int64, err error) {
	stmt, err := s.prepare(text)
	if err != nil {
		return 0, err
	}
	result, err := stmt.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (s *statements) query(text string, args []any, row func(*sql.Rows) error) error {
	stmt, err := s.prepare(text)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(context.Background(), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
