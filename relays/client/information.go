package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Information is what a relay says of itself (NIP-11), as far as it is of use here. Zero is what it
// does not say. Nothing of it is believed: capabilities are probed, and limits are kept to where
// they can be meant.
type Information struct {
	Version       string
	NIPs          []int // that it says it speaks
	Limits        Limits
	Auth, Payment bool // it says that it wants them
}

// Names reports whether a relay says that it speaks a NIP.
func (i *Information) Names(nip int) bool { return slices.Contains(i.NIPs, nip) }

// Limits are what a relay keeps to in answers. Zero is unknown or unlimited.
type Limits struct {
	Subscriptions int // open REQs on one connection
	Events        int // of one answer
}

// widestPage is how many events of one second are asked for where the relay names no limit.
const widestPage = 20_000

// Widest is how many events of one second to ask for, where they fill a page: the cursor of Pages
// goes by seconds, and what is not in the answer is lost.
func (l Limits) Widest() int { return min(cmp.Or(l.Events, widestPage), widestPage) }

// What is read of an information document.
const (
	maxInformation       = 256 << 10 // bytes
	maxInformationHeader = 64 << 10
	maxNIPs              = 1000
	maxVersion           = 100
)

// Inform asks the relay at a WebSocket URL for its information document, for so long at most. The
// error says in words what came instead of one, if it is not that of ctx.
func Inform(ctx context.Context, url string, within time.Duration) (Information, error) {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	text, err := document(limited, url)
	switch {
	case err == nil:
		return parseInformation(text)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return Information{}, err
}

func document(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http"+strings.TrimPrefix(url, "ws"), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/nostr+json")
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxInformationHeader},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, errors.New("the request for it got no answer")
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxInformation+1))
	switch {
	case err != nil:
		return nil, errors.New("the document broke off")
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the answer is HTTP %d", response.StatusCode)
	case len(text) > maxInformation:
		return nil, fmt.Errorf("the document is larger than %d KiB", maxInformation>>10)
	}
	return text, nil
}

// parseInformation reads each field by itself: one of a wrong type says nothing, and spoils no
// other.
func parseInformation(text []byte) (i Information, err error) {
	fields := read[map[string]json.RawMessage](text)
	if fields == nil {
		return i, errors.New("the answer is no JSON object")
	}
	limitation := read[map[string]json.RawMessage](fields["limitation"])
	nips := read[[]json.Number](fields["supported_nips"])
	for _, n := range nips[:min(len(nips), maxNIPs)] {
		if nip := sensible(n); nip > 0 {
			i.NIPs = append(i.NIPs, nip)
		}
	}
	if version := read[string](fields["version"]); len(version) <= maxVersion {
		i.Version = version
	}
	i.Limits.Subscriptions = sensible(read[json.Number](limitation["max_subscriptions"]))
	i.Limits.Events = sensible(read[json.Number](limitation["max_limit"]))
	i.Auth, i.Payment = read[bool](limitation["auth_required"]), read[bool](limitation["payment_required"])
	return i, nil
}

// read returns a value of JSON, zero where it is of another type.
func read[T any](text []byte) (value T) {
	var got T
	if json.Unmarshal(text, &got) == nil {
		value = got
	}
	return value
}

// sensible is a number that can be meant, else 0.
func sensible(n json.Number) int {
	if limit, err := n.Int64(); err == nil && limit > 0 && limit < 1<<31 {
		return int(limit)
	}
	return 0
}
