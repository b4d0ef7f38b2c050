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

// informationVersion asks the relay's information document (NIP-11) for the software's version: for programs that do not tell it otherwise. It
// returns "" where the relay does not say. Nothing else of the document is believed: capabilities are probed.
func informationVersion(ctx context.Context, url string) string {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http"+strings.TrimPrefix(url, "ws"), nil)
	if err != nil {
		return ""
	}
	req.Header.Set("Accept", "application/nostr+json")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	var document struct {
		Version string `json:"version"`
	}
	if json.NewDecoder(io.LimitReader(resp.Body, maxInformation)).Decode(&document) != nil || len(document.Version) > 100 {
		return ""
	}
	return document.Version
}
