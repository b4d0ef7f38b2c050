package preflight

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxInformation is how much of an information document is read, in bytes.
const maxInformation = 256 << 10

// probeInformation asks for the information document (NIP-11). That there is one is all that is taken from it: what it says is probed instead.
func probeInformation(a *asking) (string, error) {
	request, err := http.NewRequestWithContext(a.ctx, http.MethodGet, "http"+strings.TrimPrefix(a.o.URL, "ws"), nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("Accept", "application/nostr+json")
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, ResponseHeaderTimeout: a.o.Wait}
	client := http.Client{Transport: transport, Timeout: a.o.Wait, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		if a.ctx.Err() != nil {
			return "", err
		}
		return "no: the request for it got no answer", nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxInformation+1))
	switch {
	case err != nil && a.ctx.Err() != nil:
		return "", err
	case err != nil:
		return "no: the document broke off", nil
	case response.StatusCode != http.StatusOK:
		return fmt.Sprintf("no: the answer is HTTP %d", response.StatusCode), nil
	case len(text) > maxInformation:
		return fmt.Sprintf("no: the document is larger than %d KiB", maxInformation>>10), nil
	}
	var document map[string]json.RawMessage
	if err := json.Unmarshal(text, &document); err != nil || document == nil {
		return "no: the answer is no JSON object", nil
	}
	return "yes", nil
}

// probeSearch looks for one of two events by a word of its content (NIP-50). A relay that does not know the field returns both, or nothing.
func probeSearch(a *asking) (string, error) {
	s, err := a.dial()
	if err != nil {
		return "", err
	}
	const word = "thrushes"
	found, other := a.event(1, a.recent(0), "where the "+word+" sing at dusk"), a.event(1, a.recent(1), "where nothing of the kind is to be heard")
	if err := s.store(found, other); err != nil {
		return "", err
	}
	if _, err := s.poll(exactly(ids(other, found)), a.mine(1)); err != nil {
		return "", err
	}
	r, err := s.pollWith(exactly(ids(found)), `"search":"`+word+`"`, a.mine(1))
	switch {
	case errors.Is(err, errSilent):
		return "no: a search is not answered", nil
	case err != nil:
		return "", err
	case exactly(ids(found))(&r):
		return "yes", nil
	case r.closed:
		return "no: CLOSED " + quoted(r.reason), nil
	case exactly(ids(other, found))(&r):
		return "no: a search is answered as if it were none", nil
	case len(r.ids)+r.noID == 0:
		return "no: a search finds nothing", nil
	}
	return "wrong: a search for a word of one event returns others", nil
}
