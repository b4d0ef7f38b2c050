package negentropy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"relaybench/relays/wire"
)

// MinReadLimit is the least wire.Options.ReadLimit, in bytes, of a connection that reconciles:
// relays send frames of 500,000 bytes and more, which hexadecimal digits double. The default of
// wire suffices.
const MinReadLimit = 2 << 20

// DefaultFrameLimit bounds the messages sent, in bytes before hexadecimal digits double them: with
// room to spare, they pass the 128 KiB that relays take at most.
const DefaultFrameLimit = 60_000

// The defaults of Options.
const (
	DefaultFirstAnswer = 10 * time.Second
	DefaultStall       = 30 * time.Second
	DefaultMaxRounds   = 100_000
	DefaultMaxNeed     = 20_000_000
)

// maxIdle is how many answers in a row may name no id. From one to the next the first range that
// differs is split, so that a peer that keeps to the protocol, at whatever limits, names ids every
// few rounds; one that does not could send each answer just in time, for days.
const maxIdle = 50

// maxExamples is how many ids that nobody knows are kept as examples.
const maxExamples = 5

// noticeGrace is how long an answer may still take after a NOTICE that can hardly be about anything
// but NEG-OPEN.
const noticeGrace = 2 * time.Second

// Options say how to reconcile with a relay. Zero values stand for the defaults.
type Options struct {
	// FirstAnswer is how long the relay may take to answer NEG-OPEN, in which it may have to build
	// its structure. Silence for as long, in which other frames do not count, means that it does
	// not speak NIP-77.
	FirstAnswer time.Duration
	// Stall is how long each later answer may take.
	Stall time.Duration
	// MaxRounds and MaxNeed bound what a hostile relay can make of one reconciliation: its rounds,
	// among which ReconcileSplit counts the refusals, and the ids it says it has.
	MaxRounds, MaxNeed int
	// Known, where it is set, says whether there is any event with the id, wherever it was
	// published. The ids that the relay names and nobody knows are counted in Result.Unexpected.
	Known func(id *ID) bool
	// Have and Need are called with ids that only the local set has, and that only the relay has,
	// as rounds arrive. The slices are valid during the call and must not be written to. Either may
	// be nil.
	Have, Need func(ids []ID)
}

func (o Options) withDefaults() Options {
	o.FirstAnswer = cmp.Or(max(0, o.FirstAnswer), DefaultFirstAnswer)
	o.Stall = cmp.Or(max(0, o.Stall), DefaultStall)
	o.MaxRounds = cmp.Or(max(0, o.MaxRounds), DefaultMaxRounds)
	o.MaxNeed = cmp.Or(max(0, o.MaxNeed), DefaultMaxNeed)
	return o
}

// Result is what a reconciliation came to and what it cost.
type Result struct {
	Refused int // NEG-OPENs that ReconcileSplit had to split
	Rounds  int // NEG-MSGs received
	// BytesUp and BytesDown are the bytes of all NEG- frames, WebSocket headers included, each
	// frame taken as sent in one piece; NEG-CLOSE is left out.
	BytesUp, BytesDown int64
	Have, Need         int
	Unexpected         int           // of the ids to need: those that Options.Known does not know, each as often as it was named
	UnexpectedExamples []ID          // the first of them, at most 5
	Duration           time.Duration // from NEG-OPEN until the last answer was dealt with
	FirstAnswer        time.Duration // from NEG-OPEN to the arrival of the first answer
	Engine             time.Duration // the part of Duration spent on the protocol, Have and Need included
	Coding             time.Duration // the part of Duration spent on JSON and hexadecimal digits
}

// Reconcile finds out how the relay's events that match the filter, a JSON object (NIP-01), differ
// from the storage, which must hold exactly the local ids that match it. conn carries nothing else
// meanwhile, and has a read limit of at least MinReadLimit: other frames, among them unsolicited
// AUTH and NOTICE, are passed over.
//
// The Result counts what was done also where there is an error:
//
//   - *UnsupportedError: the relay does not speak NIP-77. The connection can be used further where
//     it said so by CLOSED or NEG-ERR.
//   - *RelayError: it does, and has a reason not to reconcile, or not to go on. The connection can
//     be used further.
//   - *ProtocolError: it does, and breaks NIP-77. Which of them end the connection is said there.
//   - ctx's error, and the connection's own: the connection has ended.
func Reconcile(ctx context.Context, conn *wire.Conn, filter []byte, s Storage, o Options) (Result, error) {
	var r Result
	err := reconcile(ctx, conn, filter, s, o.withDefaults(), &r)
	return r, err
}

// Probe finds out within the time given, 0 for 3 s, whether a relay speaks NIP-77, by a
// reconciliation of nothing. Its errors are those of Reconcile: an *UnsupportedError where it does
// not; a *RelayError, `auth-required:` say, leaves it open; a *ProtocolError where it does,
// wrongly. Of stored events, which the relay is known to hold, it has to name each (Unnamed), since
// the client claims to hold nothing; any other id that it names is an UnexpectedIDs.
func Probe(ctx context.Context, conn *wire.Conn, within time.Duration, stored ...ID) error {
	within = cmp.Or(within, 3*time.Second)
	ids := make([]string, len(stored), len(stored)+1)
	for i := range stored {
		ids[i] = hex.EncodeToString(stored[i][:])
	}
	if len(ids) == 0 {
		ids = append(ids, strings.Repeat("0", 2*IDSize))
	}
	left := slices.Clone(stored)
	filter := `{"ids":["` + strings.Join(ids, `","`) + `"]}`
	result, err := Reconcile(ctx, conn, []byte(filter), new(Set), Options{FirstAnswer: within, Stall: within, MaxNeed: len(stored),
		Need: func(ids []ID) {
			left = slices.DeleteFunc(left, func(id ID) bool { return slices.Contains(ids, id) })
		}})
	switch named := len(stored) - len(left); {
	case err != nil:
		return err
	case result.Need > named:
		err = &ProtocolError{Code: UnexpectedIDs, Answer: result.Rounds, Count: uint64(result.Need), Limit: uint64(len(stored))}
	case len(left) > 0:
		err = &ProtocolError{Code: Unnamed, Answer: result.Rounds, Count: uint64(len(left))}
	default:
		return nil
	}
	return fmt.Errorf("reconciling: %w", err)
}

// client is one reconciliation; its memory serves the next.
type client struct {
	ctx                   context.Context
	conn                  *wire.Conn
	o                     Options
	sub                   string
	initiator             Initiator
	frame, message, reply []byte
	result                *Result
	rounds                int           // of this reconciliation
	garbage               int           // NEG-MSGs at fault that came before, on this connection
	strays                int           // NEG-MSGs under other ids
	start                 time.Duration // of NEG-OPEN
	deadline              time.Duration // of the next answer
	notice                *string       // what the relay said in a NOTICE while NEG-OPEN was not answered
}

var clients = sync.Pool{New: func() any { return new(client) }}

var subscriptions atomic.Uint64

// subscription makes an id that no other reconciliation on a connection has. All are equally long,
// so that the bytes of a frame do not depend on how many came before it: they are compared exactly.
func subscription() string {
	const first, many = 100_000, 900_000
	return "neg" + strconv.FormatUint(first+subscriptions.Add(1)%many, 10)
}

// reconcile adds what it does to the result. The bounds of the options are on the sums.
func reconcile(ctx context.Context, conn *wire.Conn, filter []byte, s Storage, o Options, r *Result) error {
	if !json.Valid(filter) || bytes.TrimLeft(filter, " \t\r\n")[0] != '{' { // it would break the frame, or mean another message
		return errors.New("reconciling: the filter is not a JSON object")
	}
	c := clients.Get().(*client)
	defer clients.Put(c)
	c.ctx, c.conn, c.o, c.sub, c.result, c.rounds = ctx, conn, o, subscription(), r, 0
	c.strays, c.notice, c.garbage = 0, nil, conn.Garbage().Of(wire.NegMsg)
	defer context.AfterFunc(ctx, conn.Abort)()
	defer conn.WatchUseful(0)
	c.start = wire.Now()
	err := c.run(filter, s)
	r.Duration += wire.Now() - c.start
	var refused *RelayError
	var unsupported *UnsupportedError
	if !errors.As(err, &refused) && !errors.As(err, &unsupported) { // else the relay has closed it already, or is gone
		c.begin("NEG-CLOSE")
		if conn.Send(append(c.frame, ']')) == nil {
			conn.Flush() // a failure shows in whatever is done next
		}
	}
	if err != nil {
		return fmt.Errorf("reconciling: %w", err)
	}
	return nil
}

func (c *client) run(filter []byte, s Storage) error {
	n, r := &c.initiator, c.result
	n.writer, n.have, n.need = newWriter(s, DefaultFrameLimit), c.have, c.need
	c.await(c.o.FirstAnswer)
	mark := c.start
	c.message = n.Open(c.message[:0])
	r.Engine += lap(&mark)
	c.begin("NEG-OPEN")
	c.frame = append(append(append(c.frame, ','), filter...), `,"`...)
	for named, idle := r.Have+r.Need, 0; ; {
		if err := c.send(&mark); err != nil {
			return err
		}
		if err := c.round(&mark); err != nil || n.Done() {
			return err
		}
		if idle++; r.Have+r.Need > named {
			named, idle = r.Have+r.Need, 0
		}
		if asked := r.Rounds + r.Refused; asked >= c.o.MaxRounds {
			return endless(c.rounds, asked, c.o.MaxRounds)
		} else if idle == maxIdle {
			return endless(c.rounds, idle, c.o.MaxRounds)
		}
		c.await(c.o.Stall)
		c.begin("NEG-MSG")
		c.frame = append(c.frame, `,"`...)
	}
}

// round waits for an answer and deals with it. mark is when that began, and when it was done.
func (c *client) round(mark *time.Duration) error {
	r := c.result
	payload, err := c.receive()
	if err != nil {
		return err
	}
	*mark = wire.Now()
	if c.reply, err = DecodeHex(c.reply[:0], payload); err == nil {
		r.Coding += lap(mark)
		c.message, err = c.initiator.Next(c.message[:0], c.reply)
		r.Engine += lap(mark)
	}
	if wrong := (*FormatError)(nil); errors.As(err, &wrong) {
		return &ProtocolError{Code: wrong.Code, Answer: c.rounds, Count: wrong.Count, Limit: wrong.Limit, Err: err}
	}
	if r.Need > c.o.MaxNeed {
		return &ProtocolError{Code: UnexpectedIDs, Answer: c.rounds, Count: uint64(r.Need), Limit: uint64(c.o.MaxNeed)}
	}
	return err
}

func (c *client) have(ids []ID) {
	c.result.Have += len(ids)
	report(c.o.Have, ids)
}

func (c *client) need(ids []ID) {
	r := c.result
	r.Need += len(ids)
	for i := range ids {
		if c.o.Known == nil || c.o.Known(&ids[i]) {
			continue
		}
		if r.Unexpected++; len(r.UnexpectedExamples) < maxExamples {
			r.UnexpectedExamples = append(r.UnexpectedExamples, ids[i])
		}
	}
	if r.Need <= c.o.MaxNeed {
		report(c.o.Need, ids)
	}
}

// begin starts a frame with its label and the subscription.
func (c *client) begin(label string) {
	c.frame = append(append(append(append(append(c.frame[:0], `["`...), label...), `","`...), c.sub...), '"')
}

// send puts the message's digits and the end to the frame, and sends it.
func (c *client) send(mark *time.Duration) error {
	c.frame = append(AppendHex(c.frame, c.message), `"]`...)
	c.result.Coding += lap(mark)
	c.result.BytesUp += frameBytes(len(c.frame)) + 4 // a client's mask
	return c.cause(c.conn.Send(c.frame))
}

// await gives the relay so long for its next answer. Other frames do not count: a relay could send
// them without end.
func (c *client) await(limit time.Duration) {
	c.deadline = wire.Now() + limit
	c.conn.WatchUseful(limit)
}

// cause says why the connection ended, where ctx ended it.
func (c *client) cause(err error) error {
	if errors.Is(err, wire.ErrClosed) && c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	return err
}

// receive returns the payload of the next answer.
func (c *client) receive() ([]byte, error) {
	r, opening := c.result, c.rounds == 0
	var m wire.Message
	for {
		frame, at, err := c.conn.Read()
		if err != nil {
			return nil, c.readFailed(err)
		}
		mark := wire.Now()
		c.conn.ParseMessage(frame, &m)
		r.Coding += lap(&mark)
		if m.Type == wire.Notice && opening {
			if text := m.ReasonText(); c.notice == nil || soundsLikeRefusal(text) {
				c.notice = &text
				if answersNegOpen(text) && c.deadline-wire.Now() > noticeGrace {
					c.await(noticeGrace)
				}
			}
		}
		ours := string(m.Sub) == c.sub
		if m.Type == wire.NegMsg && !ours {
			c.strays++
		}
		if !ours || m.Type != wire.NegMsg && m.Type != wire.NegErr && m.Type != wire.Closed {
			continue
		}
		r.BytesDown += frameBytes(len(frame))
		if m.Type != wire.NegMsg {
			return nil, refusal(&m, frame, c.rounds)
		}
		c.rounds++
		if r.Rounds++; opening && r.FirstAnswer == 0 {
			r.FirstAnswer = at - c.start
		}
		return m.Payload, nil
	}
}

// readFailed says what it means that no answer came.
func (c *client) readFailed(err error) error {
	err = c.cause(err)
	broken := &ProtocolError{Answer: c.rounds + 1, Err: err}
	opening, stalled := c.rounds == 0, errors.Is(err, wire.ErrStalled)
	var closed *wire.CloseError
	var large *wire.TooLargeError
	switch {
	case errors.As(err, &large):
		broken.Code, broken.Count, broken.Limit = Oversized, uint64(large.Announced), uint64(large.Limit)
	case stalled && c.conn.Garbage().Of(wire.NegMsg) > c.garbage:
		broken.Code = Malformed
	case stalled && c.strays > 0:
		broken.Code, broken.Count = WrongSubscription, uint64(c.strays)
	case stalled && !opening:
		broken.Code = Silent
	case stalled && c.notice != nil:
		return &UnsupportedError{How: ByNotice, Text: *c.notice}
	case stalled:
		return &UnsupportedError{How: BySilence}
	case opening && errors.As(err, &closed):
		return &UnsupportedError{How: ByDisconnect, Text: closed.Reason}
	default:
		return fmt.Errorf("waiting for answer %d: %w", broken.Answer, err)
	}
	return broken
}

// endless says that there were so many rounds and refusals, of which so many were allowed; where
// they were fewer, that they led nowhere.
func endless(answer, count, limit int) error {
	return &ProtocolError{Code: Endless, Answer: answer, Count: uint64(count), Limit: uint64(limit)}
}

// lap returns the time since mark, and moves mark to now.
func lap(mark *time.Duration) time.Duration {
	before := *mark
	*mark = wire.Now()
	return *mark - before
}

// frameBytes is a server's text frame of n bytes with its header (RFC 6455 section 5.2).
func frameBytes(n int) int64 {
	switch {
	case n < 126:
		return int64(n) + 2
	case n < 1<<16:
		return int64(n) + 4
	}
	return int64(n) + 10
}
