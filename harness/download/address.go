package download

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// maxRelays bounds how many relays are read side by side.
const maxRelays = 16

// ParseURLs reads relay URLs separated by commas, and gives each its plain form. A URL with a user
// name, a query or a fragment is refused: those may hold secrets, and where a corpus comes from is
// published.
func ParseURLs(text string) ([]string, error) {
	var urls []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		u, err := url.Parse(part)
		switch {
		case err != nil || u.Scheme != "ws" && u.Scheme != "wss" || u.Hostname() == "" || len(part) > 300:
			return nil, fmt.Errorf("%q is no relay's URL: write wss://host or ws://host:port, and commas between several", part)
		case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
			return nil, fmt.Errorf("%q has more than a host, a port and a path: leave out user name, query and fragment, since the source of a corpus is published", u.Host)
		}
		plain := u.Scheme + "://" + strings.ToLower(u.Host) + strings.TrimSuffix(u.EscapedPath(), "/")
		if !slices.Contains(urls, plain) {
			urls = append(urls, plain)
		}
	}
	switch {
	case len(urls) == 0:
		return nil, fmt.Errorf("no relay's URL is given: write wss://host, and commas between several")
	case len(urls) > maxRelays:
		return nil, fmt.Errorf("%d relays are too many: %d can be read side by side", len(urls), maxRelays)
	}
	return urls, nil
}
