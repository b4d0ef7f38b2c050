package probe

import (
	"slices"
	"time"
)

// Report is what a probe found. Names in JSON end in the unit; what is nil was not seen.
type Report struct {
	Limit       int     `json:"limit"`
	Shapes      []Shape `json:"shapes"`
	Compression bool    `json:"compressionOffered"`
	Passes      []Pass  `json:"passes"`
}

// Pass is one round over all relays and shapes, with signatures checked in one way.
type Pass struct {
	Verified    string        `json:"verified"` // "inline" or "parallel"
	Relays      []Relay       `json:"relays"`
	Consumption []Consumption `json:"consumption"`
}

// Relay is one relay in one pass. Notice, Failure and Reason are raw texts, the relay's own or with parts of them.
type Relay struct {
	URL        string   `json:"url"`
	ConnectMs  *float64 `json:"connectMs"` // TCP, TLS and the WebSocket handshake, name look-up included
	Failure    string   `json:"failure,omitempty"`
	Extensions string   `json:"extensions"` // Sec-WebSocket-Extensions as negotiated
	Reconnects int      `json:"reconnects"`
	Auth       bool     `json:"authChallenge"` // it sent one (NIP-42), which was not answered
	Notices    int      `json:"notices"`
	Notice     string   `json:"notice,omitempty"` // the first
	Unknown    int      `json:"unknownFrames"`    // that are no message of NIP-01
	Strays     int      `json:"strayEvents"`      // of subscriptions that nobody made
	Answers    []Answer `json:"answers"`
}

// Answer is what one REQ brought up to its end.
type Answer struct {
	Shape        Shape    `json:"shape"`
	Outcome      Outcome  `json:"outcome"`
	Reason       string   `json:"reason,omitempty"`
	ReqMs        *float64 `json:"reqSentMs"`    // from the beginning of connecting to the REQ, of the first shape
	FirstMs      *float64 `json:"firstEventMs"` // from the REQ
	EndMs        *float64 `json:"endMs"`        // from the REQ to EOSE, or to whatever ended the answer
	Received     int      `json:"received"`     // EVENT messages
	Unique       int      `json:"unique"`       // verified events that were asked for and that no relay had brought before
	Duplicates   int64    `json:"duplicates"`   // brought before by this relay or another
	Alone        int      `json:"alone"`        // ids of good events that no other relay sent
	Unasked      int      `json:"unasked"`      // events that do not match the filter
	Malformed    int64    `json:"malformed"`    // no events, or without an id
	BadID        int64    `json:"badId"`
	BadSignature int64    `json:"badSignature"`
	AfterEnd     int      `json:"afterEnd"` // EVENT messages after EOSE: new ones, or a relay that says EOSE too early
	Bytes        int64    `json:"bytes"`    // of all frames
	FrameBytes   *Sizes   `json:"frameBytes"`
}

// DuplicateShare is the share of what was received that had come before, 0 where nothing was received.
func (a *Answer) DuplicateShare() float64 {
	if a.Received == 0 {
		return 0
	}
	return float64(a.Duplicates) / float64(a.Received)
}

// Forged is how many events were none or did not verify.
func (a *Answer) Forged() int64 { return a.Malformed + a.BadID + a.BadSignature }

// Sizes of EVENT frames in bytes.
type Sizes struct {
	P50 int `json:"p50"`
	P99 int `json:"p99"`
	Max int `json:"max"`
}

// Consumption is the consumer's side of one shape over all relays.
type Consumption struct {
	Shape      Shape   `json:"shape"`
	Frames     int64   `json:"frames"` // EVENT messages
	Duplicates int64   `json:"duplicates"`
	Delivered  int64   `json:"delivered"` // verified, each once
	Refused    int64   `json:"refused"`
	DelayMs    *Delay  `json:"queueDelayMs"` // from the socket until the consumer had the verified event
	CheckingMs float64 `json:"checkingMs"`   // time of processor cores spent parsing and verifying
	SpanMs     float64 `json:"spanMs"`       // from the first event's arrival until the consumer was done with the last
	Busy       float64 `json:"consumerBusy"` // the share of that span in which the consumer worked, checks included where they are inline
}

// Delay between socket and consumer.
type Delay struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	Max float64 `json:"max"`
}

// result arranges what is known of a link whose connection has ended.
func (l *link) result() Relay {
	r := Relay{URL: l.url, Extensions: l.agreed, Reconnects: l.again, Auth: l.auth, Notices: l.notices, Notice: l.notice, Unknown: l.unknown, Strays: l.strays}
	if l.connected > 0 {
		r.ConnectMs = span(0, l.connected)
	} else if l.failure != nil {
		r.Failure = l.failure.Error()
	}
	for _, a := range l.answers {
		r.Answers = append(r.Answers, a.result())
	}
	return r
}

func (a *answer) result() Answer {
	r := Answer{Shape: a.shape, Outcome: a.outcome, Reason: a.reason, Received: a.received, Unique: a.checked.unique, Duplicates: a.counts.Duplicates, Alone: a.alone,
		Unasked: a.checked.unasked, Malformed: a.counts.Malformed + int64(a.nameless), BadID: a.counts.BadID, BadSignature: a.counts.BadSignature,
		AfterEnd: a.late, Bytes: a.bytes}
	if a.sinceDial > 0 {
		r.ReqMs = span(0, a.sinceDial)
	}
	if a.first > 0 {
		r.FirstMs = span(a.sent, a.first)
	}
	if a.sent > 0 {
		r.EndMs = span(a.sent, a.done)
	}
	if n := len(a.sizes); n > 0 {
		slices.Sort(a.sizes)
		r.FrameBytes = &Sizes{P50: int(a.sizes[(n*50+99)/100-1]), P99: int(a.sizes[(n*99+99)/100-1]), Max: int(a.sizes[n-1])}
	}
	return r
}

// span is a time in ms. What arrived together with what came before the REQ was sent counts as nothing.
func span(from, to time.Duration) *float64 {
	ms := milliseconds(max(0, to-from))
	return &ms
}
