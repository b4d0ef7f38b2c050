package harness

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxInformation is how much of a relay's information document is read, in bytes.
const maxInformation = 256 << 10

// Information is what a relay says of itself (NIP-11), as far as it is of use here. Zero is what it does not say.
type Information struct {
	Version          string
	MaxSubscriptions int // open at a time on one connection
	MaxLimit         int // events of one answer
}

// Inform asks the relay for its information document. Whatever goes wrong, it says nothing: capabilities are probed, and what it says is used only to
// ask no more of a relay than it likes.
func Inform(ctx context.Context, url string) Information {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http"+strings.TrimPrefix(url, "ws"), nil)
	if err != nil {
		return Information{}
	}
	req.Header.Set("Accept", "application/nostr+json")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return Information{}
	}
	defer resp.Body.Close()
	var document struct {
		Version    string `json:"version"`
		Limitation struct {
			MaxSubscriptions json.Number `json:"max_subscriptions"`
			MaxLimit         json.Number `json:"max_limit"`
		} `json:"limitation"`
	}
	if json.NewDecoder(io.LimitReader(resp.Body, maxInformation)).Decode(&document) != nil {
		return Information{}
	}
	said := Information{MaxSubscriptions: sensible(document.Limitation.MaxSubscriptions), MaxLimit: sensible(document.Limitation.MaxLimit)}
	if len(document.Version) <= 100 {
		said.Version = document.Version
	}
	return said
}

// sensible is a limit that can be meant, else 0.
func sensible(n json.Number) int {
	if limit, err := n.Int64(); err == nil && limit > 0 && limit < 1<<31 {
		return int(limit)
	}
	return 0
}

// informationVersion asks for the software's version: for programs that do not tell it otherwise. It returns "" where the relay does not say.
func informationVersion(ctx context.Context, url string) string { return Inform(ctx, url).Version }
