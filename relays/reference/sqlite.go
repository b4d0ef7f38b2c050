package reference

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	_ "modernc.org/sqlite" // the "sqlite" driver, in pure Go
)

// sqliteEngine keeps its tables as tables whose keys are row numbers. One connection writes, a pool of others reads, in WAL mode.
type sqliteEngine struct {
	writer *sql.Conn
	write  *statements // on the writer's connection
	read   *statements // on any reader's
	pools  []*sql.DB
	lock   *os.File
}

func openSQLite(dir string, d Durability) (engine, error) {
	path := filepath.Join(dir, "events.sqlite")
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the sqlite store %s: %w", path, err)
	}
	s := &sqliteEngine{lock: lock}
	if err := s.open(path, d); err != nil {
		s.close()
		return nil, fmt.Errorf("opening the sqlite store %s: %w", path, err)
	}
	return s, nil
}

func (s *sqliteEngine) open(path string, d Durability) error {
	synchronous := map[Durability]string{DurabilityCommit: "FULL", DurabilityBatch: "NORMAL", DurabilityNone: "OFF"}[d]
	pool := func(conns int, pragmas ...string) (*sql.DB, error) {
		values := url.Values{"_pragma": append([]string{"busy_timeout(5000)", "page_size(8192)", "journal_mode(WAL)", "temp_store(MEMORY)", "cache_size(-32768)", "mmap_size(1073741824)"}, pragmas...)}
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
	for _, name := range tableNames {
		if _, err := s.writer.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS `+name+` (key INTEGER PRIMARY KEY, value BLOB NOT NULL)`); err != nil {
			return err
		}
	}
	if _, err := s.writer.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS notes (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID`); err != nil {
		return err
	}
	s.write = newStatements(s.writer)
	readers, err := pool(max(4, 2*runtime.GOMAXPROCS(0)), "query_only(1)")
	if err != nil {
		return err
	}
	s.read = newStatements(readers)
	return nil
}

// close moves the write-ahead log into the database.
func (s *sqliteEngine) close() error {
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
	return errors.Join(append(errs, s.lock.Close())...)
}

// view reads without a transaction: each statement sees one state.
func (s *sqliteEngine) view(read func(engineView) error) error { return read(&sqliteRows{on: s.read}) }

func (s *sqliteEngine) update(change func(engineTx) error) (err error) {
	if err := s.write.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	tx := &sqliteRows{on: s.write}
	if err = change(tx); err == nil {
		if err = tx.flush(0); err == nil {
			err = s.write.exec(`COMMIT`)
		}
	}
	if err != nil {
		return errors.Join(err, s.write.exec(`ROLLBACK`))
	}
	return nil
}

// sqliteRows reads, or writes in the one transaction there is.
type sqliteRows struct {
	on      *statements
	pending []any // new events, key and value: one statement inserts many
	room    []byte
}

// The statements on one table or another.
var (
	sqliteGet, sqliteEach, sqlitePut, sqliteRemove = perTable(`SELECT value FROM %s WHERE key = ?`), perTable(`SELECT key, value FROM %s WHERE key >= ? ORDER BY key`),
		perTable(`INSERT INTO %s (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`), perTable(`DELETE FROM %s WHERE key BETWEEN ? AND ?`)
	sqliteInsertOne  = `INSERT INTO events (key, value) VALUES (?, ?)`
	sqliteInsertMany = sqliteInsertOne + strings.Repeat(`, (?, ?)`, insertRows-1)
)

// insertRows is how many events one statement inserts.
const insertRows = 32

func perTable(format string) (texts [tables]string) {
	for i, name := range tableNames {
		texts[i] = fmt.Sprintf(format, name)
	}
	return texts
}

// flush inserts pending events while there are at least as many as given.
func (r *sqliteRows) flush(least int) error {
	rest := r.pending
	for len(rest) > 0 && len(rest) >= 2*least {
		n, text := 2, sqliteInsertOne
		if len(rest) >= 2*insertRows {
			n, text = 2*insertRows, sqliteInsertMany
		}
		if err := r.on.exec(text, rest[:n]...); err != nil {
			return err
		}
		rest = rest[n:]
	}
	r.pending = append(r.pending[:0], rest...)
	return nil
}

func (r *sqliteRows) get(t table, key uint64) (value []byte, err error) {
	if err := r.flush(0); err != nil {
		return nil, err
	}
	err = r.on.query(sqliteGet[t], []any{int64(key)}, func(rows *sql.Rows) error { return rows.Scan(&value) })
	return value, err
}

// eventsAtOnce is how many events one statement asks for.
const eventsAtOnce = 512

func (r *sqliteRows) events(seqs []uint64, each func(i int, raw []byte) error) error {
	if err := r.flush(0); err != nil {
		return err
	}
	for start := 0; start < len(seqs); start += eventsAtOnce {
		part := seqs[start:min(len(seqs), start+eventsAtOnce)]
		place := make(map[uint64]int, len(part))
		for i, seq := range part {
			place[seq] = start + i
		}
		text, args := selectEvents(part)
		err := r.on.query(text, args, func(rows *sql.Rows) error {
			var key int64
			var raw sql.RawBytes
			if err := rows.Scan(&key, &raw); err != nil {
				return err
			}
			i, wanted := place[uint64(key)]
			if !wanted {
				return nil
			}
			return each(i, r.keep(raw))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// selectEvents writes the statement. Rows that lie close together are read with what is between them, which is cheaper than seeking each.
func selectEvents(seqs []uint64) (text string, args []any) {
	first, last := slices.Min(seqs), slices.Max(seqs)
	if last-first < 2*uint64(len(seqs)) {
		return `SELECT key, value FROM events WHERE key BETWEEN ? AND ?`, []any{int64(first), int64(last)}
	}
	keys := make([]any, len(seqs))
	for i, seq := range seqs {
		keys[i] = int64(seq)
	}
	in, args := inList(keys)
	return `SELECT key, value FROM events WHERE key` + in, args
}

// keep copies a value that goes with the next row to where it stays until the view ends, in pieces of memory for many.
func (r *sqliteRows) keep(value []byte) []byte {
	if cap(r.room)-len(r.room) < len(value) {
		r.room = make([]byte, 0, max(len(value), min(64<<10, 4<<10+2*cap(r.room))))
	}
	start := len(r.room)
	r.room = append(r.room, value...)
	return r.room[start:len(r.room):len(r.room)]
}

// inList writes a list, padded to a power of two by repetition so that there are few different statements.
func inList(values []any) (string, []any) {
	if len(values) == 0 {
		return ` IN (NULL)`, nil
	}
	n := 1 << bits.Len(uint(len(values)-1))
	for len(values) < n {
		values = append(values, values[len(values)-1])
	}
	return ` IN (?` + strings.Repeat(`,?`, n-1) + `)`, values
}

func (r *sqliteRows) each(t table, from uint64, row func(key uint64, value []byte) error) error {
	if err := r.flush(0); err != nil {
		return err
	}
	return r.on.query(sqliteEach[t], []any{int64(from)}, func(rows *sql.Rows) error {
		var key int64
		var value sql.RawBytes
		if err := rows.Scan(&key, &value); err != nil {
			return err
		}
		return row(uint64(key), value)
	})
}

func (r *sqliteRows) note(key []byte) (value []byte, err error) {
	err = r.on.query(`SELECT value FROM notes WHERE key = ?`, []any{key}, func(rows *sql.Rows) error { return rows.Scan(&value) })
	return value, err
}

func (r *sqliteRows) eachNote(note func(key []byte) error) error {
	return r.on.query(`SELECT key FROM notes`, nil, func(rows *sql.Rows) error {
		var key sql.RawBytes
		if err := rows.Scan(&key); err != nil {
			return err
		}
		return note(key)
	})
}

func (r *sqliteRows) put(t table, key uint64, value []byte) error {
	if t == eventsTable {
		r.pending = append(r.pending, int64(key), value)
		return r.flush(insertRows)
	}
	return r.on.exec(sqlitePut[t], int64(key), value)
}

func (r *sqliteRows) remove(t table, first, last uint64) error {
	if err := r.flush(0); err != nil {
		return err
	}
	return r.on.exec(sqliteRemove[t], int64(first), int64(last))
}

func (r *sqliteRows) setNote(key, value []byte) error {
	return r.on.exec(`INSERT INTO notes (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`, key, value)
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
	stmt, err := s.prepare(text)
	if err == nil {
		_, err = stmt.ExecContext(context.Background(), args...)
	}
	return err
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
