package preflight

import (
	"errors"

	"relaybench/relays/client"
)

// probeInformation asks for the information document (NIP-11). What it says is probed instead, and
// compared with that.
func probeInformation(a *asking) (spoken bool, text string, err error) {
	said, err := client.Inform(a.ctx, a.o.URL, a.o.Wait)
	switch {
	case a.ctx.Err() != nil:
		return false, "", err
	case err != nil:
		return false, "no: " + err.Error(), nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.said = said
	return true, "yes", nil
}

// probeSearch looks for one of two events by a word of its content (NIP-50). A relay that does not know the field returns both, or nothing.
func probeSearch(a *asking) (spoken bool, text string, err error) {
	s, err := a.dial()
	if err != nil {
		return false, "", err
	}
	const word = "thrushes"
	found, other := a.event(1, a.recent(0), "where the "+word+" sing at dusk"), a.event(1, a.recent(1), "where nothing of the kind is to be heard")
	if err := s.store(found, other); err != nil {
		return false, "", err
	}
	if _, err := s.poll(exactly(ids(other, found)), a.mine(1)); err != nil {
		return false, "", err
	}
	r, err := s.pollWith(exactly(ids(found)), `"search":"`+word+`"`, a.mine(1))
	switch {
	case errors.Is(err, errSilent):
		return false, "no: a search is not answered", s.meant()
	case err != nil:
		return false, "", err
	case exactly(ids(found))(&r):
		return true, "yes", nil
	case r.closed:
		return false, "no: CLOSED " + quoted(r.reason), nil
	case exactly(ids(other, found))(&r):
		return false, "no: a search is answered as if it were none", nil
	case len(r.ids)+r.noID == 0:
		return false, "no: a search finds nothing", nil
	}
	return false, "wrong: a search for a word of one event returns others", nil
}
