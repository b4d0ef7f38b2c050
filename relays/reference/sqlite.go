package reference

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	_ "modernc.org/sqlite" // the "sqlite" driver, in pure Go

	"relaybench/corpus"
)

// SQLite keeps events in one table with a row for each, their indexed tags in a second and the relay's notes in a third; sqlitequery.go
// says how they are read. One connection writes, a pool of others reads, in WAL mode.
type SQLite struct {
	writer *sql.Conn
	write  *statements // on the writer's connection
	read   *statements // on any reader's
	pools  []*sql.DB

	lastSeq atomic.Int64
	marks   *bloom // of the notes that exist

	mu    sync.RWMutex
	kinds []int // that ever were stored

	once   sync.Once
	closed error
}

// The tag table's hash is of name and value. Ties by id need no index of their own: SQLite sorts within a second.
const sqliteSchema = `
CREATE TABLE IF NOT EXISTS events (
	seq INTEGER PRIMARY KEY,
	id BLOB NOT NULL,
	pubkey BLOB NOT NULL,
	created_at INTEGER NOT NULL,
	kind INTEGER NOT NULL,
	expires INTEGER NOT NULL,
	raw BLOB NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS events_id ON events(id);
CREATE INDEX IF NOT EXISTS events_time ON events(created_at DESC);
CREATE INDEX IF NOT EXISTS events_kind ON events(kind, created_at DESC);
CREATE INDEX IF NOT EXISTS events_author ON events(pubkey, kind, created_at DESC);
CREATE TABLE IF NOT EXISTS tags (
	hash INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	PRIMARY KEY (hash, created_at DESC, seq)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS notes (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
`

func openSQLite(dir string, d Durability) (*SQLite, error) {
	path := filepath.Join(dir, "events.sqlite")
	s := &SQLite{marks: newBloom()}
	if err := s.open(path, d); err != nil {
		s.Close()
		return nil, fmt.Errorf("opening the sqlite store %s: %w", path, err)
	}
	return s, nil
}

func (s *SQLite) open(path string, d Durability) error {
	synchronous := map[Durability]string{DurabilityCommit: "FULL", DurabilityBatch: "NORMAL", DurabilityNone: "OFF"}[d]
	pool := func(conns int, pragmas ...string) (*sql.DB, error) {
		values := url.Values{"_pragma": append([]string{"busy_timeout(5000)", "journal_mode(WAL)", "temp_store(MEMORY)", "cache_size(-32768)", "mmap_size(1073741824)"}, pragmas...)}
		db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: values.Encode()}).String())
		if err != nil {
			return nil, err
		}
		db.SetMaxOpenConns(conns)
		db.SetMaxIdleConns(conns)
		s.pools = append(s.pools, db)
		return db, nil
	}
	db, err := pool(1, "synchronous("+synchronous+")", "wal_autocheckpoint(4000)")
	if err != nil {
		return err
	}
	ctx := context.Background()
	if s.writer, err = db.Conn(ctx); err != nil {
		return err
	}
	if _, err := s.writer.ExecContext(ctx, sqliteSchema); err != nil {
		return err
	}
	s.write = newStatements(s.writer)
	readers, err := pool(max(4, 2*runtime.GOMAXPROCS(0)), "query_only(1)")
	if err != nil {
		return err
	}
	s.read = newStatements(readers)
	return s.recall(ctx)
}

// recall reads back what is kept in memory besides the tables.
func (s *SQLite) recall(ctx context.Context) error {
	var lastSeq int64
	if err := s.writer.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM events`).Scan(&lastSeq); err != nil {
		return err
	}
	s.lastSeq.Store(lastSeq)
	rows, err := s.writer.QueryContext(ctx, `SELECT key FROM notes`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var key sql.RawBytes
		if err := rows.Scan(&key); err != nil {
			return err
		}
		s.marks.add(key)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	// The next kind after each, one seek apiece: DISTINCT would walk the whole index.
	for last := -1; ; {
		var next sql.NullInt64
		if err := s.writer.QueryRowContext(ctx, `SELECT min(kind) FROM events WHERE kind > ?`, last).Scan(&next); err != nil {
			return err
		}
		if !next.Valid {
			return nil
		}
		last = int(next.Int64)
		s.kinds = append(s.kinds, last)
	}
}

// LastSeq returns the highest row number.
func (s *SQLite) LastSeq() uint64 { return uint64(s.lastSeq.Load()) }

// Close moves the write-ahead log into the database and closes it. Closing again does nothing.
func (s *SQLite) Close() error {
	s.once.Do(func() { s.closed = s.closeAll() })
	return s.closed
}

func (s *SQLite) closeAll() error {
	var errs []error
	if s.read != nil {
		errs = append(errs, s.read.close())
	}
	for _, db := range slices.Backward(s.pools) { // readers first: the last connection to close checkpoints
		if s.write != nil && db == s.pools[0] {
			_, err := s.writer.ExecContext(context.Background(), `PRAGMA wal_checkpoint(TRUNCATE)`)
			errs = append(errs, err, s.write.close(), s.writer.Close())
		}
		errs = append(errs, db.Close())
	}
	return errors.Join(errs...)
}

// View reads without a transaction: each statement sees one state, and an event that goes between two statements is left out.
func (s *SQLite) View(read func(View) error) error { return read(&sqliteView{s, s.read}) }

// Update commits a group in one transaction.
func (s *SQLite) Update(change func(Tx) error) (err error) {
	if err := s.write.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	tx := &sqliteTx{sqliteView: sqliteView{s, s.write}}
	if err = change(tx); err == nil {
		if err = tx.flushTags(0); err == nil {
			err = s.write.exec(`COMMIT`)
		}
	}
	if err == nil && tx.lastSeq > 0 {
		s.lastSeq.Store(tx.lastSeq)
	}
	if err != nil {
		return errors.Join(err, s.write.exec(`ROLLBACK`))
	}
	return nil
}

// sqliteTx writes. Tag rows are collected: one statement inserts many.
type sqliteTx struct {
	sqliteView
	tags    []any // hash, created_at, seq, ...
	lastSeq int64
}

func (t *sqliteTx) Find(id corpus.ID) (r Record, ok bool, err error) {
	err = t.on.query(`SELECT seq, expires, raw FROM events WHERE id = ?`, []any{id[:]}, func(rows *sql.Rows) error {
		var seq, expires int64
		var raw []byte
		if err := rows.Scan(&seq, &expires, &raw); err != nil {
			return err
		}
		ok = true
		r, err = parseRecord(uint64(seq), expires, raw)
		return err
	})
	return r, ok, err
}

func (t *sqliteTx) Insert(r *Record) (bool, error) {
	n, err := t.on.change(`INSERT INTO events (seq, id, pubkey, created_at, kind, expires, raw) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
		int64(r.Seq), r.ID[:], r.PubKey[:], r.CreatedAt, r.Kind, r.Expires, r.Raw)
	if err != nil || n == 0 {
		return false, err
	}
	t.store.knowKind(r.Kind)
	t.lastSeq = int64(r.Seq)
	for name, value := range r.indexedTags() {
		t.tags = append(t.tags, sqlHash(name, value), r.CreatedAt, int64(r.Seq))
	}
	return true, t.flushTags(3 * tagRows)
}

// tagRows is how many tag rows one statement inserts.
const tagRows = 32

var (
	insertTags = `INSERT OR IGNORE INTO tags (hash, created_at, seq) VALUES (?, ?, ?)` + strings.Repeat(`, (?, ?, ?)`, tagRows-1)
	insertTag  = `INSERT OR IGNORE INTO tags (hash, created_at, seq) VALUES (?, ?, ?)`
)

// flushTags inserts collected tag rows while there are at least as many values as given.
func (t *sqliteTx) flushTags(least int) error {
	rest := t.tags
	for len(rest) > 0 && len(rest) >= least {
		n, text := 3, insertTag
		if len(rest) >= 3*tagRows {
			n, text = 3*tagRows, insertTags
		}
		if err := t.on.exec(text, rest[:n]...); err != nil {
			return err
		}
		rest = rest[n:]
	}
	t.tags = append(t.tags[:0], rest...)
	return nil
}

func (t *sqliteTx) Remove(r *Record) error {
	if err := t.flushTags(0); err != nil {
		return err
	}
	for name, value := range r.indexedTags() {
		if err := t.on.exec(`DELETE FROM tags WHERE hash = ? AND created_at = ? AND seq = ?`, sqlHash(name, value), r.CreatedAt, int64(r.Seq)); err != nil {
			return err
		}
	}
	return t.on.exec(`DELETE FROM events WHERE seq = ?`, int64(r.Seq))
}

func (t *sqliteTx) Scan(q *Query, after Position) (Cursor, error) {
	if err := t.flushTags(0); err != nil {
		return nil, err
	}
	return t.sqliteView.Scan(q, after)
}

func (t *sqliteTx) Note(key []byte) (value []byte, err error) {
	if !t.store.marks.mayHave(key) {
		return nil, nil
	}
	err = t.on.query(`SELECT value FROM notes WHERE key = ?`, []any{key}, func(rows *sql.Rows) error { return rows.Scan(&value) })
	return value, err
}

func (t *sqliteTx) SetNote(key, value []byte) error {
	t.store.marks.add(key)
	return t.on.exec(`INSERT INTO notes (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`, key, value)
}

func (s *SQLite) knowKind(kind int) {
	s.mu.RLock()
	at, known := slices.BinarySearch(s.kinds, kind)
	s.mu.RUnlock()
	if !known {
		s.mu.Lock()
		s.kinds = slices.Insert(slices.Clone(s.kinds), at, kind)
		s.mu.Unlock()
	}
}

func (s *SQLite) allKinds() []int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.kinds
}

func sqlHash[T ~string | ~[]byte](name, value T) int64 {
	h := tagHash(name, value)
	n := int64(0)
	for _, b := range h {
		n = n<<8 | int64(b)
	}
	return n
}

// preparer is a connection or a pool of them.
type preparer interface {
	PrepareContext(ctx context.Context, text string) (*sql.Stmt, error)
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

// statements prepares each text once.
type statements struct {
	on       preparer
	mu       sync.Mutex
	prepared map[string]*sql.Stmt
}

// longText is the length from which a statement is not kept: lists that long are rare, and the statement is large.
const longText = 4096

func newStatements(on preparer) *statements {
	return &statements{on: on, prepared: map[string]*sql.Stmt{}}
}

func (s *statements) prepare(text string) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stmt := s.prepared[text]; stmt != nil {
		return stmt, nil
	}
	stmt, err := s.on.PrepareContext(context.Background(), text)
	if err == nil {
		s.prepared[text] = stmt
	}
	return stmt, err
}

func (s *statements) exec(text string, args ...any) error {
	_, err := s.change(text, args...)
	return err
}

// change returns how many rows it changed.
func (s *statements) change(text string, args ...any) (int64, error) {
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
	rows, err := s.rows(text, args)
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

func (s *statements) rows(text string, args []any) (*sql.Rows, error) {
	if len(text) > longText {
		return s.on.QueryContext(context.Background(), text, args...)
	}
	stmt, err := s.prepare(text)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(context.Background(), args...)
}

func (s *statements) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for stmt := range maps.Values(s.prepared) {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(errs...)
}
