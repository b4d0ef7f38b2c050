package relays

import "fmt"

// eventEnvelope is what a message holds beyond the event itself: ["EVENT",…] (NIP-01).
const eventEnvelope = len(`["EVENT",]`)

// Accepts says whether the relay, as it is launched, takes events of up to maxEventBytes bytes (the
// corpus's ceiling, 65,536 where it is 0), as far as its definition tells. Where it does not, why
// is a sentence without the relay's name.
func (d *Definition) Accepts(maxEventBytes int) (ok bool, why string) {
	event := Settings{MaxEventBytes: max(maxEventBytes, 0)}.withDefaults(d).MaxEventBytes
	switch l := d.Limits; {
	case l.MessageBytes > 0 && event > l.MessageBytes-eventEnvelope:
		return false, fmt.Sprintf("reads messages of up to %d bytes, which cannot be configured: an event of %d bytes is refused", l.MessageBytes, event)
	case l.ContentChars > 0 && event > l.ContentChars:
		return false, fmt.Sprintf("takes contents of up to %d characters, which cannot be configured: an event of %d bytes may be refused", l.ContentChars, event)
	}
	return true, ""
}
