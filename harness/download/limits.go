package download

import (
	"fmt"
	"strings"
	"time"

	"relaybench/relays/client"
)

// What is asked for at a time. A relay that says how many events it sends at once (NIP-11) is asked
// for so many, within what makes sense: below, a second's events might not fit into an answer;
// above, an answer that breaks off costs too much.
const (
	usualPage    = 500
	smallestPage = 50
	largestPage  = 5000
)

// informationTime is how long a relay has for its information document. Its max_message_length is
// kept to in any case, since a REQ here is shorter than any relay can do with.
const informationTime = 5 * time.Second

// pageSize is how many events to ask for at a time where so many are wanted in all, or all (0), of
// a relay that says that it sends so many at once, or does not say (0).
func pageSize(most, wanted int) int {
	size := usualPage
	if most > 0 {
		size = min(max(most, smallestPage), largestPage)
	}
	if wanted > 0 {
		size = min(size, wanted+wanted/10+smallestPage) // some more, so that few may do with one page
	}
	return size
}

// warning is what people should know of what a relay says, "" for nothing.
func warning(said *client.Information) string {
	var wants []string
	if said.Auth {
		wants = append(wants, "authentication")
	}
	if said.Payment {
		wants = append(wants, "payment")
	}
	if wants == nil {
		return ""
	}
	return fmt.Sprintf("says that it wants %s, which it does not get from here; it is asked all the same", strings.Join(wants, " and "))
}
