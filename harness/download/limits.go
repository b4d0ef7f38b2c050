package download

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// What is asked for at a time. A relay that says how many events it sends at once (NIP-11) is asked for so many, within what makes sense: below,
// a second's events might not fit into an answer; above, an answer that breaks off costs too much.
const (
	usualPage    = 500
	smallestPage = 50
	largestPage  = 5000
	widestPage   = 20_000 // of one second, where the relay names no limit
)

const (
	maxInformation  = 256 << 10
	informationTime = 5 * time.Second
)

// limits are what a relay says about itself (NIP-11) as far as it bears on reading. Nothing of it is believed further than that it may be kept to: asking
// is what shows. Its max_message_length is kept to in any case, since a REQ here is shorter than any relay can do with.
type limits struct {
	MaxLimit         int
	MaxSubscriptions int
	Auth, Payment    bool
}

// page is how many events to ask for at a time where so many are wanted in all, or all (0).
func (l limits) page(wanted int) int {
	size := usualPage
	if l.MaxLimit > 0 {
		size = min(max(l.MaxLimit, smallestPage), largestPage)
	}
	if wanted > 0 {
		size = min(size, wanted+wanted/10+smallestPage) // some more, so that few may do with one page
	}
	return size
}

// widest is how many events of one second to ask for, where they fill a page: the cursor goes by seconds, and what is not in the answer is lost.
func (l limits) widest() int {
	if l.MaxLimit > 0 {
		return min(l.MaxLimit, widestPage)
	}
	return widestPage
}

// single says whether no more than one REQ may be open.
func (l limits) single() bool { return l.MaxSubscriptions == 1 }

// warning is what people should know of it, "" for nothing.
func (l limits) warning() string {
	var wants []string
	if l.Auth {
		wants = append(wants, "authentication")
	}
	if l.Payment {
		wants = append(wants, "payment")
	}
	if wants == nil {
		return ""
	}
	return fmt.Sprintf("says that it wants %s, which it does not get from here; it is asked all the same", strings.Join(wants, " and "))
}

// askLimits asks for the relay's information document. A relay without one, or with one that is none, has said nothing.
func askLimits(ctx context.Context, url string, stall time.Duration) limits {
	ctx, cancel := context.WithTimeout(ctx, min(stall, informationTime))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http"+strings.TrimPrefix(url, "ws"), nil)
	if err != nil {
		return limits{}
	}
	req.Header.Set("Accept", "application/nostr+json")
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return limits{}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxInformation))
	if err != nil || resp.StatusCode != http.StatusOK {
		return limits{}
	}
	return parseLimits(text)
}

// parseLimits reads each field by itself: one of a wrong type says nothing, and spoils no other.
func parseLimits(text []byte) (l limits) {
	var document struct {
		Limitation map[string]json.RawMessage `json:"limitation"`
	}
	if json.Unmarshal(text, &document) != nil {
		return l
	}
	said := func(name string, to any) { _ = json.Unmarshal(document.Limitation[name], to) }
	said("max_limit", &l.MaxLimit)
	said("max_subscriptions", &l.MaxSubscriptions)
	said("auth_required", &l.Auth)
	said("payment_required", &l.Payment)
	return l
}
