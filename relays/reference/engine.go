package reference

// engine is what a database has to offer to be a store: a few tables, one writer at a time, any number of readers. What is found by which
// filter is not its business but the index's (index.go), which keeps its own pieces in two of the tables; so bolt and SQLite differ in how
// they keep rows and share everything else.
type engine interface {
	// update runs one transaction; the caller sees to it that there is one at a time. nil means that it is as durable as the engine
	// was opened for, an error that nothing of it is kept.
	update(func(engineTx) error) error
	// view reads what is committed. Rows that are replaced or deleted meanwhile may be seen or not.
	view(func(engineView) error) error
	close() error
}

// table is a table of an engine. Keys are positive numbers below 1<<63.
type table int

const (
	eventsTable   table = iota // Seq → canonical JSON
	deadTable                  // Seq of an event that is gone but for its index entries → nothing
	blocksTable                // segment and number → index entries
	segmentsTable              // segment → what it consists of
	tables
)

var tableNames = [tables]string{"events", "dead", "blocks", "segments"}

// engineView reads. Values are valid until the view ends, and must not be changed.
type engineView interface {
	// get returns a row's value, nil where there is none.
	get(t table, key uint64) ([]byte, error)
	// events reads many events; each gets the place in seqs, and is not called for those that are gone. The order is the engine's choice.
	events(seqs []uint64, each func(i int, raw []byte) error) error
	// each goes through rows from a key on, in order.
	each(t table, from uint64, row func(key uint64, value []byte) error) error
	note(key []byte) ([]byte, error)
	eachNote(note func(key []byte) error) error
}

// engineTx writes, and sees what it wrote. Values are not changed after they are handed over, until the transaction ends.
type engineTx interface {
	engineView
	put(t table, key uint64, value []byte) error
	// remove deletes the rows whose keys are from first to last.
	remove(t table, first, last uint64) error
	setNote(key, value []byte) error
}
