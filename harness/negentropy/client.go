package negentropy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"relaybench/harness/wire"
)

// MinReadLimit is the least wire.Options.ReadLimit, in bytes, of a connection that reconciles: relays send frames of 500,000 bytes and
// more, which hexadecimal digits double. The default of wire suffices.
const MinReadLimit = 2 << 20

// The defaults of Options.
const (
	DefaultFrameLimit  = 60_000 // doubled, and with room to spare, it passes the 128 KiB that relays take at most
	DefaultFirstAnswer = 10 * time.Second
	DefaultStall       = 30 * time.Second
	DefaultMaxRounds   = 100_000
	DefaultMaxNeed     = 20_000_000
)

// maxBarren is how many answers in a row may name no id. From one to the next the first range that differs is split, so that a peer that keeps
// to the protocol, at whatever limits, names ids every few rounds; one that does not could send each answer just in time, for days.
const maxBarren = 50

// noticeGrace is how long an answer may still take after a NOTICE that can hardly be about anything but NEG-OPEN.
const noticeGrace = 2 * time.Second

// Options say how to reconcile with a relay. Zero values stand for the defaults.
type Options struct {
	// FrameLimit bounds the messages sent, in bytes before hexadecimal digits double them; less than 0 means no limit.
	FrameLimit int
	// FirstAnswer is how long the relay may take to answer NEG-OPEN, in which it may have to build its structure. Silence for as long, in
	// which other frames do not count, means that it does not speak NIP-77.
	FirstAnswer time.Duration
	// Stall is how long each later answer may take.
	Stall time.Duration
	// MaxRounds and MaxNeed bound what a hostile relay can make of one reconciliation: its rounds, among which ReconcileSplit counts the
	// refusals, and the ids it says it has.
	MaxRounds, MaxNeed int
	// Have and Need are called with ids that only the local set has, and that only the relay has, as rounds arrive. The slices are valid
	// during the call and must not be written to. Either may be nil.
	Have, Need func(ids []ID)
}

func (o Options) withDefaults() Options {
	if o.FrameLimit == 0 {
		o.FrameLimit = DefaultFrameLimit
	}
	defaults := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
	}
	defaults(&o.FirstAnswer, DefaultFirstAnswer)
	defaults(&o.Stall, DefaultStall)
	if o.MaxRounds <= 0 {
		o.MaxRounds = DefaultMaxRounds
	}
	if o.MaxNeed <= 0 {
		o.MaxNeed = DefaultMaxNeed
	}
	return o
}

// Result is what a reconciliation came to and what it cost.
type Result struct {
	Parts   int // reconciliations completed: 1, or as many as ReconcileSplit needed
	Refused int // NEG-OPENs that ReconcileSplit had to split
	Rounds  int // NEG-MSGs received
	// BytesUp and BytesDown are the bytes of all NEG- frames, WebSocket headers included, each frame taken as sent in one piece;
	// NEG-CLOSE is left out.
	BytesUp, BytesDown int64
	// PayloadUp and PayloadDown are the bytes of the negentropy messages in them, binary.
	PayloadUp, PayloadDown int64
	Have, Need             int
	Duration               time.Duration // from NEG-OPEN until the last answer was dealt with
	FirstAnswer            time.Duration // from NEG-OPEN to the arrival of the first answer
	Engine                 time.Duration // the part of Duration spent on the protocol, Have and Need included
	Coding                 time.Duration // the part of Duration spent on JSON and hexadecimal digits
}

func (r *Result) add(o Result) {
	r.Parts, r.Refused, r.Rounds = r.Parts+o.Parts, r.Refused+o.Refused, r.Rounds+o.Rounds
	r.BytesUp, r.BytesDown = r.BytesUp+o.BytesUp, r.BytesDown+o.BytesDown
	r.PayloadUp, r.PayloadDown = r.PayloadUp+o.PayloadUp, r.PayloadDown+o.PayloadDown
	r.Have, r.Need = r.Have+o.Have, r.Need+o.Need
	r.Duration, r.Engine, r.Coding = r.Duration+o.Duration, r.Engine+o.Engine, r.Coding+o.Coding
	if r.FirstAnswer == 0 {
		r.FirstAnswer = o.FirstAnswer
	}
}

// Reconcile finds out how the relay's events that match the filter, a JSON object (NIP-01), differ from the storage, which must hold exactly
// the local ids that match it. conn carries nothing else meanwhile, and has a read limit of at least MinReadLimit: other frames, among
// them unsolicited AUTH and NOTICE, are passed over.
//
// The Result counts what was done also where there is an error. The connection can be used further after a *RelayError, a *FormatError or
// *HexError (an answer that cannot be read), more rounds or ids than Options allow, rounds that lead nowhere, and an *UnsupportedError by CLOSED or NEG-ERR. It has
// ended after any other *UnsupportedError, an error that wraps wire.ErrStalled (no progress in time), ctx's error, and the connection's own.
func Reconcile(ctx context.Context, conn *wire.Conn, filter []byte, s Storage, o Options) (Result, error) {
	c := clients.Get().(*client)
	defer clients.Put(c)
	result, err := c.reconcile(ctx, conn, filter, s, o.withDefaults())
	if err != nil {
		err = fmt.Errorf("reconciling: %w", err)
	}
	return result, err
}

// Probe finds out within the time given, 0 for 3 s, whether a relay speaks NIP-77, by a reconciliation of nothing. Its errors are those of
// Reconcile: an *UnsupportedError where it does not; a *RelayError, `auth-required:` say, leaves it open.
func Probe(ctx context.Context, conn *wire.Conn, within time.Duration) error {
	if within <= 0 {
		within = 3 * time.Second
	}
	s := new(Set)
	if err := s.Seal(); err != nil {
		return err
	}
	filter := `{"ids":["` + string(bytes.Repeat([]byte("0"), 2*IDSize)) + `"]}`
	_, err := Reconcile(ctx, conn, []byte(filter), s, Options{FirstAnswer: within, Stall: within})
	return err
}

// client is one reconciliation; its memory serves the next.
type client struct {
	initiator             Initiator
	head                  []byte // of NEG-MSG frames, up to the payload
	frame, message, reply []byte
	result                Result
}

var clients = sync.Pool{New: func() any { return new(client) }}

var subscriptions atomic.Uint64

// subscription makes an id that no other reconciliation on a connection has. All are equally long, so that the bytes of a frame do not depend on
// how many came before it: they are compared exactly.
func subscription() string {
	const first, many = 100_000, 900_000
	return "neg" + strconv.FormatUint(first+subscriptions.Add(1)%many, 10)
}

func (c *client) reconcile(ctx context.Context, conn *wire.Conn, filter []byte, s Storage, o Options) (Result, error) {
	if err := checkFilter(filter); err != nil {
		return Result{}, err
	}
	c.result = Result{}
	r := &c.result
	c.initiator.setUp(s, o.FrameLimit,
		func(ids []ID) {
			r.Have += len(ids)
			if o.Have != nil {
				o.Have(ids)
			}
		},
		func(ids []ID) {
			r.Need += len(ids)
			if o.Need != nil && r.Need <= o.MaxNeed {
				o.Need(ids)
			}
		})
	defer c.initiator.setUp(nil, 0, nil, nil) // lets go of the caller's

	sub := subscription()
	c.head = append(append(append(c.head[:0], `["NEG-MSG","`...), sub...), `","`...)
	w := watch(ctx, conn, o.FirstAnswer)
	defer w.stop()

	start := wire.Now()
	mark := start
	c.message = c.initiator.Open(c.message[:0])
	r.Engine += lap(&mark)
	c.frame = append(append(append(c.frame[:0], `["NEG-OPEN","`...), sub...), `",`...)
	c.frame = append(append(c.frame, filter...), `,"`...)
	err := c.send(conn, w, &mark)

	named, barren := 0, 0
	for err == nil && !c.initiator.Done() {
		var payload []byte
		if payload, err = c.receive(conn, w, sub, start); err != nil {
			break
		}
		mark = wire.Now()
		if c.reply, err = DecodeHex(c.reply[:0], payload); err != nil {
			err = fmt.Errorf("answer %d: %w", r.Rounds, err)
			break
		}
		r.PayloadDown += int64(len(c.reply))
		r.Coding += lap(&mark)
		c.message, err = c.initiator.Next(c.message[:0], c.reply)
		r.Engine += lap(&mark)
		if barren++; r.Have+r.Need > named {
			named, barren = r.Have+r.Need, 0
		}
		switch {
		case err != nil:
			err = fmt.Errorf("answer %d: %w", r.Rounds, err)
		case r.Need > o.MaxNeed:
			err = fmt.Errorf("the relay names more than %d ids as its own: more than were to be taken", o.MaxNeed)
		case c.initiator.Done():
		case barren == maxBarren:
			err = fmt.Errorf("no progress: the relay finds that the sets differ, and named no id in %d rounds", barren)
		case r.Rounds >= o.MaxRounds:
			err = fmt.Errorf("no end after %d rounds", r.Rounds)
		default:
			w.progress(o.Stall)
			c.frame = append(c.frame[:0], c.head...)
			err = c.send(conn, w, &mark)
		}
	}
	r.Duration = wire.Now() - start
	c.close(conn, sub, err)
	if err == nil {
		r.Parts = 1
	}
	return *r, err
}

// send puts the message's digits and the end to the frame, and sends it.
func (c *client) send(conn *wire.Conn, w *watchdog, mark *time.Duration) error {
	c.frame = append(AppendHex(c.frame, c.message), `"]`...)
	c.result.Coding += lap(mark)
	c.result.PayloadUp += int64(len(c.message))
	c.result.BytesUp += frameBytes(len(c.frame)) + 4 // a client's mask
	return w.cause(conn.Send(c.frame))
}

// close says NEG-CLOSE, except where the relay has closed already or is gone.
func (c *client) close(conn *wire.Conn, sub string, err error) {
	var refused *RelayError
	var unsupported *UnsupportedError
	if errors.As(err, &refused) || errors.As(err, &unsupported) {
		return
	}
	c.frame = append(append(append(c.frame[:0], `["NEG-CLOSE","`...), sub...), `"]`...)
	if conn.Send(c.frame) == nil {
		conn.Flush() // a failure shows in whatever is done next
	}
}

// receive returns the payload of the next answer.
func (c *client) receive(conn *wire.Conn, w *watchdog, sub string, start time.Duration) ([]byte, error) {
	r := &c.result
	opening := r.Rounds == 0
	for {
		frame, at, err := conn.Read()
		if err != nil {
			return nil, c.readFailed(err, w, opening)
		}
		mark := wire.Now()
		var m wire.Message
		wire.Parse(frame, &m)
		r.Coding += lap(&mark)
		switch {
		case m.Type == wire.Notice && opening:
			if text := m.ReasonText(); w.notice == nil || soundsLikeRefusal(text) {
				w.notice = &text
				if answersNegOpen(text) {
					w.limit(noticeGrace)
				}
			}
		case string(m.Sub) != sub:
		case m.Type == wire.NegMsg:
			r.BytesDown += frameBytes(len(frame))
			if r.Rounds++; opening {
				r.FirstAnswer = at - start
			}
			return m.Payload, nil
		case m.Type == wire.NegErr:
			r.BytesDown += frameBytes(len(frame))
			return nil, refusal(ByNegErr, &m, frame, opening)
		case m.Type == wire.Closed:
			r.BytesDown += frameBytes(len(frame))
			return nil, refusal(ByClosed, &m, frame, opening)
		}
	}
}

func (c *client) readFailed(err error, w *watchdog, opening bool) error {
	err = w.cause(err)
	var closed *wire.CloseError
	switch {
	case !opening:
	case errors.As(err, &closed):
		return &UnsupportedError{How: ByDisconnect, Text: closed.Reason}
	case errors.Is(err, wire.ErrStalled) && w.notice != nil:
		return &UnsupportedError{How: ByNotice, Text: *w.notice}
	case errors.Is(err, wire.ErrStalled):
		return &UnsupportedError{How: BySilence}
	}
	return fmt.Errorf("waiting for answer %d: %w", c.result.Rounds+1, err)
}

// checkFilter keeps what would break the frame, or mean another message, from being sent.
func checkFilter(filter []byte) error {
	if !json.Valid(filter) || bytes.TrimLeft(filter, " \t\r\n")[0] != '{' {
		return errors.New("the filter is not a JSON object")
	}
	return nil
}

// lap returns the time since mark, and moves mark to now.
func lap(mark *time.Duration) time.Duration {
	now := wire.Now()
	d := now - *mark
	*mark = now
	return d
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
