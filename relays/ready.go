package relays

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"relaybench/relays/client"
	"relaybench/relays/machine"
	"relaybench/relays/wire"
)

const (
	probeEvery   = 20 * time.Millisecond
	probeTimeout = 5 * time.Second // one try; a relay that is still opening its store may drop the first

	// How often and for how long the same refusal of the handshake must come before it is taken for
	// an answer.
	refusalTries = 10
	refusalTime  = 2 * time.Second
)

// awaitReady returns nil once the child itself has answered a REQ with EOSE, a *StartError when it
// will not, or ctx's error.
func (p *Process) awaitReady(ctx context.Context) error {
	timeout := p.def.readyTimeout()
	deadline := time.Now().Add(timeout)
	last := "" // why it was not ready once it listened
	var refused refusals
	for ; ctx.Err() == nil; p.pause(ctx) {
		left := time.Until(deadline)
		switch {
		case p.hasEnded():
			return p.endedEarly()
		case left <= 0 && last == "":
			return startError(NeverListened, "nothing listened on 127.0.0.1:%d within %s", p.port, timeout)
		case left <= 0:
			return startError(NoAnswer, "it listens but did not answer a REQ with EOSE within %s (%s)", timeout, last)
		}
		host := machine.ListeningHost(p.port)
		if host == "" {
			continue
		}
		if err := p.portTaken(); err != nil {
			return err
		}
		p.url = "ws://" + net.JoinHostPort(host, strconv.Itoa(p.port))
		refusal, err := probe(ctx, p.url, min(left, probeTimeout))
		switch {
		case refusal != "":
			return startError(NoAnswer, "it listens but refuses REQ: %s", refusal)
		case err == nil && p.hasEnded(): // somebody else may have answered
			return p.endedEarly()
		case err == nil:
			return p.portTaken()
		}
		last = err.Error()
		if refused.settled(err) {
			if status := (*wire.StatusError)(nil); errors.As(err, &status) {
				last = fmt.Sprintf("it refuses the WebSocket handshake with HTTP status %d", status.Code)
			}
			return startError(NoAnswer, "%s", last)
		}
	}
	return ctx.Err()
}

func (p *Process) pause(ctx context.Context) {
	select {
	case <-p.done:
	case <-ctx.Done():
	case <-time.After(probeEvery):
	}
}

func (p *Process) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// refusals counts how often in a row the handshake or the REQ was answered, and in the same wrong
// way.
type refusals struct {
	kind  string
	tries int
	since time.Time
}

// settled counts a failed probe, and says whether the same refusal has come so often and for so
// long that it is the relay's answer: while a relay starts it may refuse for a moment.
func (r *refusals) settled(err error) bool {
	kind, enough := "", refusalTries
	var status *wire.StatusError
	switch {
	case errors.Is(err, wire.ErrHandshake):
		kind = "broken"
	case errors.As(err, &status) && final(status.Code):
		kind = strconv.Itoa(status.Code)
	case errors.Is(err, wire.ErrTooLarge):
		kind = "too large"
	case errors.Is(err, wire.ErrStalled): // with what came in an answer's place, see probe
		kind, enough = "garbage", 2 // which each took all the time of a probe
	}
	if kind == "" || kind != r.kind {
		*r = refusals{kind: kind, since: time.Now()}
	}
	r.tries++
	return kind != "" && r.tries >= enough && time.Since(r.since) >= refusalTime
}

// final says whether an HTTP status is one that time does not change: no server error, and not "too
// early" or "too many requests".
func final(code int) bool {
	return code < http.StatusInternalServerError && code != http.StatusRequestTimeout && code != http.StatusTooEarly && code != http.StatusTooManyRequests
}

// portTaken is the error of a process that listens on the port in the child's place, nil for none.
func (p *Process) portTaken() error {
	if p.def.containerised(p.program) {
		return nil // the container engine's own daemon listens for it
	}
	if owner := portOwner(p.port, p.tree.pids()); owner != "" {
		return p.takenBy(owner)
	}
	return nil
}

func (p *Process) takenBy(owner string) error {
	return startError(PortTaken, "port %d, which it was given, was taken by %s", p.port, owner)
}

func (p *Process) endedEarly() error {
	switch {
	case machine.ListeningHost(p.port) != "":
		return p.takenBy("another process, and then it " + p.status)
	case strings.HasPrefix(p.status, "killed"):
		return startError(Crash, "crashed before it was ready (%s)", p.status)
	case p.status == "exited with status 0":
		return startError(EarlyExit, "%s before it was ready; its command must stay in the foreground", p.status)
	}
	return startError(EarlyExit, "%s before it was ready", p.status)
}

// containerised says whether the program hands the relay to a daemon, so that the relay is no
// descendant of the child.
func (d *Definition) containerised(program string) bool {
	return slices.Contains([]string{"docker", "podman", "nerdctl"}, filepath.Base(program))
}

// probe asks for one note. It returns "" and nil for an EOSE, the reason where the REQ was refused
// with CLOSED (NIP-01), and otherwise an error: an ErrStalled where what came is no message. AUTH
// challenges (NIP-42) and NOTICEs are passed over, the last NOTICE kept for the error.
func probe(ctx context.Context, url string, timeout time.Duration) (refusal string, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout) // a frame now and then must not keep the probe alive for ever
	defer cancel()
	conn, err := client.Dial(ctx, client.Options{URL: url, Stall: timeout, Patient: true})
	if err != nil {
		var status *wire.StatusError
		switch inner := errors.Unwrap(err); {
		case errors.As(err, &status) || errors.Is(err, wire.ErrHandshake):
			err = inner // without the address, which is either known or secret
		case ctx.Err() != nil:
			err = errors.New("no WebSocket handshake in time")
		case inner != nil:
			err = inner
		}
		return "", err
	}
	defer conn.Abort()
	if _, err := conn.Request(ctx, []byte(`{"kinds":[1],"limit":1}`), 0); err != nil {
		return "", fmt.Errorf("sending REQ: %w", err)
	}
	for {
		s, err := conn.Read()
		switch {
		case err != nil:
			if garbage := conn.Wire().Garbage(); garbage.Count > 0 && ctx.Err() != nil {
				err = &wire.StallError{Garbage: garbage}
			} else if ctx.Err() != nil {
				err = errors.New("no EOSE in time")
			}
			if notice := conn.Stats.Reason; notice != "" {
				err = fmt.Errorf("%w; its NOTICE: %s", err, cleanLine([]byte(notice), 200))
			}
			return "", err
		case s == nil:
		case conn.Message.Type == wire.EOSE:
			return "", nil
		case conn.Message.Type == wire.Closed:
			return cmp.Or(cleanLine([]byte(conn.Message.ReasonText()), 200), "CLOSED without a reason"), nil
		}
	}
}

func connect(ctx context.Context, d *Definition, s Settings) (*Process, error) {
	p, err := Prepare(d, "", s)
	if err != nil {
		return nil, err
	}
	refusal, err := probe(ctx, d.URL, d.readyTimeout())
	public := publicURL(d.URL) // an error may repeat the address, which may hold a password
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, startError(NoAnswer, "%s did not answer a REQ with EOSE: %s", public, strings.ReplaceAll(err.Error(), d.URL, public))
	case refusal != "":
		return nil, startError(NoAnswer, "%s refuses REQ: %s", public, refusal)
	}
	return p, nil
}
