package negentropy

import (
	"bytes"
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

// The defaults of Options.
const (
	DefaultFrameLimit  = 60_000 // doubled, and with room to spare, it passes the 128 KiB that relays take at most
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
	// FrameLimit bounds the messages sent, in bytes before hexadecimal digits double them; less
	// than 0 means no limit.
	FrameLimit int
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
	// BytesUp and BytesDown are the bytes of all NEG- frames, WebSocket headers included, each
	// frame taken as sent in one piece; NEG-CLOSE is left out.
	BytesUp, BytesDown int64
	// PayloadUp and PayloadDown are the bytes of the negentropy messages in them, binary.
	PayloadUp, PayloadDown int64
	Have, Need             int
	Unexpected             int           // of the ids to need: those that Options.Known does not know, each as often as it was named
	UnexpectedExamples     []ID          // the first of them, at most 5
	Duration               time.Duration // from NEG-OPEN until the last answer was dealt with
	FirstAnswer            time.Duration // from NEG-OPEN to the arrival of the first answer
	Engine                 time.Duration // the part of Duration spent on the protocol, Have and Need included
	Coding                 time.Duration // the part of Duration spent on JSON and hexadecimal digits
}

func (r *Result) add(o Result) {
	r.Parts, r.Refused, r.Rounds = r.Parts+o.Parts, r.Refused+o.Refused, r.Rounds+o.Rounds
	r.BytesUp, r.BytesDown = r.BytesUp+o.BytesUp, r.BytesDown+o.BytesDown
	r.PayloadUp, r.PayloadDown = r.PayloadUp+o.PayloadUp, r.PayloadDown+o.PayloadDown
	r.Have, r.Need, r.Unexpected = r.Have+o.Have, r.Need+o.Need, r.Unexpected+o.Unexpected
	r.UnexpectedExamples = append(r.UnexpectedExamples, o.UnexpectedExamples[:min(len(o.UnexpectedExamples), maxExamples-len(r.UnexpectedExamples))]...)
	r.Duration, r.Engine, r.Coding = r.Duration+o.Duration, r.Engine+o.Engine, r.Coding+o.Coding
	if r.FirstAnswer == 0 {
		r.FirstAnswer = o.FirstAnswer
	}
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
	c := clients.Get().(*client)
	defer clients.Put(c)
	result, err := c.reconcile(ctx, conn, filter, s, o.withDefaults())
	if err != nil {
		err = fmt.Errorf("reconciling: %w", err)
	}
	return result, err
}

// Probe finds out within the time given, 0 for 3 s, whether a relay speaks NIP-77, by a
// reconciliation of nothing. Its errors are those of Reconcile: an *UnsupportedError where it does
// not; a *RelayError, `auth-required:` say, leaves it open; a *ProtocolError where it does,
// wrongly. Of stored events, which the relay is known to hold, it has to name each (Unnamed), since
// the client claims to hold nothing; any other id that it names is an UnexpectedIDs.
func Probe(ctx context.Context, conn *wire.Conn, within time.Duration, stored ...ID) error {
	if within <= 0 {
		within = 3 * time.Second
	}
	s := new(Set)
	if err := s.Seal(); err != nil {
		return err
	}
	ids := make([]string, len(stored))
	for i := range stored {
		ids[i] = hex.EncodeToString(stored[i][:])
	}
	if len(ids) == 0 {
		ids = []string{strings.Repeat("0", 2*IDSize)}
	}
	left := slices.Clone(stored)
	filter := `{"ids":["` + strings.Join(ids, `","`) + `"]}`
	result, err := Reconcile(ctx, conn, []byte(filter), s, Options{FirstAnswer: within, Stall: within, MaxNeed: len(stored),
		Need: func(ids []ID) {
			left = slices.DeleteFunc(left, func(id ID) bool { return slices.Contains(ids, id) })
		}})
	if err != nil {
		return err
	}
	broken := &ProtocolError{Answer: result.Rounds}
	switch named := len(stored) - len(left); {
	case result.Need > named:
		broken.Code, broken.Count, broken.Limit = UnexpectedIDs, uint64(result.Need), uint64(len(stored))
	case len(left) > 0:
		broken.Code, broken.Count = Unnamed, uint64(len(left))
	default:
		return nil
	}
	return fmt.Errorf("reconciling: %w", broken)
}

// client is one reconciliation; its memory serves the next.
type client struct {
	initiator             Initiator
	head                  []byte // of NEG-MSG frames, up to the payload
	frame, message, reply []byte
	result                Result
	garbage               int // NEG-MSGs at fault that came before, on this connection
	strays                int // NEG-MSGs under other ids
	ctx                   context.Context
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

func (c *client) reconcile(ctx context.Context, conn *wire.Conn, filter []byte, s Storage, o Options) (Result, error) {
	if err := checkFilter(filter); err != nil {
		return Result{}, err
	}
	c.result, c.strays, c.garbage = Result{}, 0, conn.Garbage().Of(wire.NegMsg)
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
			if o.Known != nil {
				r.unexpected(ids, o.Known)
			}
			if o.Need != nil && r.Need <= o.MaxNeed {
				o.Need(ids)
			}
		})
	defer c.initiator.setUp(nil, 0, nil, nil) // lets go of the caller's

	sub := subscription()
	c.head = append(append(append(c.head[:0], `["NEG-MSG","`...), sub...), `","`...)
	c.ctx, c.notice = ctx, nil
	defer context.AfterFunc(ctx, conn.Abort)()
	c.await(conn, o.FirstAnswer)
	defer conn.WatchUseful(0)

	start := wire.Now()
	mark := start
	c.message = c.initiator.Open(c.message[:0])
	r.Engine += lap(&mark)
	c.frame = append(append(append(c.frame[:0], `["NEG-OPEN","`...), sub...), `",`...)
	c.frame = append(append(c.frame, filter...), `,"`...)
	err := c.send(conn, &mark)

	named, idle := 0, 0
	for err == nil && !c.initiator.Done() {
		var payload []byte
		if payload, err = c.receive(conn, sub, start); err != nil {
			break
		}
		mark = wire.Now()
		if c.reply, err = DecodeHex(c.reply[:0], payload); err != nil {
			err = breach(r.Rounds, err)
			break
		}
		r.PayloadDown += int64(len(c.reply))
		r.Coding += lap(&mark)
		c.message, err = c.initiator.Next(c.message[:0], c.reply)
		r.Engine += lap(&mark)
		if idle++; r.Have+r.Need > named {
			named, idle = r.Have+r.Need, 0
		}
		switch {
		case err != nil:
			err = breach(r.Rounds, err)
		case r.Need > o.MaxNeed:
			err = &ProtocolError{Code: UnexpectedIDs, Answer: r.Rounds, Count: uint64(r.Need), Limit: uint64(o.MaxNeed)}
		case c.initiator.Done():
		case r.Rounds >= o.MaxRounds:
			err = endless(r.Rounds, r.Rounds, o.MaxRounds)
		case idle == maxIdle:
			err = endless(r.Rounds, idle, o.MaxRounds)
		default:
			c.await(conn, o.Stall)
			c.frame = append(c.frame[:0], c.head...)
			err = c.send(conn, &mark)
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
func (c *client) send(conn *wire.Conn, mark *time.Duration) error {
	c.frame = append(AppendHex(c.frame, c.message), `"]`...)
	c.result.Coding += lap(mark)
	c.result.PayloadUp += int64(len(c.message))
	c.result.BytesUp += frameBytes(len(c.frame)) + 4 // a client's mask
	return c.cause(conn.Send(c.frame))
}

// await gives the relay so long for its next answer. Other frames do not count: a relay could send
// them without end.
func (c *client) await(conn *wire.Conn, limit time.Duration) {
	c.deadline = wire.Now() + limit
	conn.WatchUseful(limit)
}

// cause says why the connection ended, where ctx ended it.
func (c *client) cause(err error) error {
	if errors.Is(err, wire.ErrClosed) && c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	return err
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
func (c *client) receive(conn *wire.Conn, sub string, start time.Duration) ([]byte, error) {
	r := &c.result
	opening := r.Rounds == 0
	var m wire.Message
	for {
		frame, at, err := conn.Read()
		if err != nil {
			return nil, c.readFailed(err, conn)
		}
		mark := wire.Now()
		conn.ParseMessage(frame, &m)
		r.Coding += lap(&mark)
		switch {
		case m.Type == wire.Notice && opening:
			if text := m.ReasonText(); c.notice == nil || soundsLikeRefusal(text) {
				c.notice = &text
				if answersNegOpen(text) && c.deadline-wire.Now() > noticeGrace {
					c.await(conn, noticeGrace)
				}
			}
		case string(m.Sub) != sub:
			if m.Type == wire.NegMsg {
				c.strays++
			}
		case m.Type == wire.NegMsg:
			r.BytesDown += frameBytes(len(frame))
			if r.Rounds++; opening {
				r.FirstAnswer = at - start
			}
			return m.Payload, nil
		case m.Type == wire.NegErr:
			r.BytesDown += frameBytes(len(frame))
			return nil, refusal(ByNegErr, &m, frame, r.Rounds)
		case m.Type == wire.Closed:
			r.BytesDown += frameBytes(len(frame))
			return nil, refusal(ByClosed, &m, frame, r.Rounds)
		}
	}
}

// readFailed says what it means that no answer came.
func (c *client) readFailed(err error, conn *wire.Conn) error {
	err = c.cause(err)
	answer, opening, stalled := c.result.Rounds+1, c.result.Rounds == 0, errors.Is(err, wire.ErrStalled)
	garbage := conn.Garbage()
	var closed *wire.CloseError
	var large *wire.TooLargeError
	switch {
	case errors.As(err, &large):
		return &ProtocolError{Code: Oversized, Answer: answer, Count: uint64(large.Announced), Limit: uint64(large.Limit), Err: err}
	case stalled && garbage.Of(wire.NegMsg) > c.garbage:
		return &ProtocolError{Code: Malformed, Answer: answer, Err: err}
	case stalled && c.strays > 0:
		return &ProtocolError{Code: WrongSubscription, Answer: answer, Count: uint64(c.strays), Err: err}
	case stalled && !opening:
		return &ProtocolError{Code: Silent, Answer: answer, Err: err}
	case stalled && c.notice != nil:
		return &UnsupportedError{How: ByNotice, Text: *c.notice}
	case stalled:
		return &UnsupportedError{How: BySilence}
	case opening && errors.As(err, &closed):
		return &UnsupportedError{How: ByDisconnect, Text: closed.Reason}
	}
	return fmt.Errorf("waiting for answer %d: %w", answer, err)
}

// endless says that there were so many rounds and refusals, of which so many were allowed; where
// they were fewer, that they led nowhere.
func endless(answer, count, limit int) error {
	return &ProtocolError{Code: Endless, Answer: answer, Count: uint64(count), Limit: uint64(limit)}
}

// foreign counts the ids that nobody knows.
func (r *Result) unexpected(ids []ID, known func(*ID) bool) {
	for i := range ids {
		if known(&ids[i]) {
			continue
		}
		if r.Unexpected++; len(r.UnexpectedExamples) < maxExamples {
			r.UnexpectedExamples = append(r.UnexpectedExamples, ids[i])
		}
	}
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
