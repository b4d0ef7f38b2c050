package preflight

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// maxInformation is how much of an information document is read, in bytes.
const maxInformation = 256 << 10

// probeInformation asks for the information document (NIP-11). What it says is probed instead, and
// compared with that.
func probeInformation(a *asking) (spoken bool, text string, err error) {
	named, why, err := a.document()
	if err != nil || why != "" {
		return false, why, err
	}
	a.names(named)
	return true, "yes", nil
}

// advertises reports whether the information document names a NIP.
func (a *asking) advertises(nip int) bool {
	named, _, err := a.document()
	return err == nil && slices.Contains(named, json.Number(strconv.Itoa(nip)))
}

// document asks for the information document and returns the NIPs that it names, or in words why
// there is none.
func (a *asking) document() (named []json.Number, why string, err error) {
	request, err := http.NewRequestWithContext(a.ctx, http.MethodGet, "http"+strings.TrimPrefix(a.o.URL, "ws"), nil)
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("Accept", "application/nostr+json")
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, ResponseHeaderTimeout: a.o.Wait}
	client := http.Client{Transport: transport, Timeout: a.o.Wait, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		if a.ctx.Err() != nil {
			return nil, "", err
		}
		return nil, "no: the request for it got no answer", nil
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxInformation+1))
	switch {
	case err != nil && a.ctx.Err() != nil:
		return nil, "", err
	case err != nil:
		return nil, "no: the document broke off", nil
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Sprintf("no: the answer is HTTP %d", response.StatusCode), nil
	case len(body) > maxInformation:
		return nil, fmt.Sprintf("no: the document is larger than %d KiB", maxInformation>>10), nil
	}
	var document map[string]json.RawMessage
	if err := json.Unmarshal(body, &document); err != nil || document == nil {
		return nil, "no: the answer is no JSON object", nil
	}
	if json.Unmarshal(document["supported_nips"], &named) != nil {
		named = nil
	}
	return named, "", nil
}

// names notes which NIPs the relay says it speaks. It is believed in nothing, and compared with
// what asking finds.
func (p *prober) names(all []json.Number) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range all[:min(len(all), 1000)] {
		if nip, err := n.Int64(); err == nil && nip > 0 {
			p.advertised = append(p.advertised, int(min(nip, 1<<30)))
		}
	}
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
