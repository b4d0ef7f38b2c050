package reference

// Where in an id the two faults that strike a share of the events look.
const (
	loseAt = 0
	hideAt = 8
)

// store puts a store between the relay and its own that forgets what is to be lost and leaves out what is to be hidden. It stands above the set that
// NIP-77 reconciles: a lost event is in neither, a hidden one in both.
func (f *Faults) store(s Store) Store {
	if f == nil || f.lose == 0 && f.hide == 0 {
		return s
	}
	return &faultyStore{s, f}
}

type faultyStore struct {
	Store
	faults *Faults
}

// Update implements Store. The rules see what is stored, hidden or not.
func (s *faultyStore) Update(change func(Tx) error) error {
	return s.Store.Update(func(tx Tx) error { return change(forgetfulTx{tx, s.faults.lose}) })
}

// View implements Store.
func (s *faultyStore) View(read func(View) error) error {
	return s.Store.View(func(v View) error { return read(hidingView{v, s.faults.hide}) })
}

type forgetfulTx struct {
	Tx
	share float64
}

func (tx forgetfulTx) Insert(r *Record) (bool, error) {
	if struck(&r.ID, loseAt, tx.share) {
		return true, nil
	}
	return tx.Tx.Insert(r)
}

type hidingView struct {
	View
	share float64
}

func (v hidingView) Scan(q *Query, after Position) (Cursor, error) {
	c, err := v.View.Scan(q, after)
	if err != nil {
		return nil, err
	}
	return hidingCursor{c, v.share}, nil
}

type hidingCursor struct {
	Cursor
	share float64
}

func (c hidingCursor) Next() (*Record, error) {
	for {
		r, err := c.Cursor.Next()
		if err != nil || r == nil || !struck(&r.ID, hideAt, c.share) {
			return r, err
		}
	}
}
