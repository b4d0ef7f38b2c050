package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The ways a connection ends other than by the relay's close frame, which is a *CloseError. Match
// with errors.Is.
var (
	// ErrStalled: nothing useful came for as long as WatchUseful allows; a *StallError.
	ErrStalled = errors.New("the relay stalled: no message arrived in time")
	// ErrTooLarge: the relay sent a message over Options.ReadLimit; a *TooLargeError.
	ErrTooLarge = errors.New("the relay sent a frame over the read limit")
	// ErrLost: the connection broke off without a close frame. It wraps the cause: io.EOF, a reset.
	ErrLost = errors.New("connection lost without a close frame")
	// ErrProtocol: the relay sent bytes that are not RFC 6455 frames.
	ErrProtocol = errors.New("the relay broke the WebSocket protocol")
	// ErrHandshake: the server agreed to WebSocket (101), but not as RFC 6455 asks of it.
	ErrHandshake = errors.New("broken WebSocket handshake")
	// ErrClosed: this side called Close or Abort.
	ErrClosed = errors.New("connection closed on this side")
)

// TooLargeError is a message over the read limit. It is refused at the frame header that takes it
// over the limit, before anything of that frame is read. errors.Is finds ErrTooLarge in it.
type TooLargeError struct {
	// Announced is the message's length in bytes as its frame headers tell it so far, 0 where only
	// inflating (RFC 7692) took it over the limit.
	Announced int64
	Limit     int64 // Options.ReadLimit, in bytes
}

func (e *TooLargeError) Error() string {
	text := fmt.Sprintf("%v of %d bytes", ErrTooLarge, e.Limit)
	if e.Announced > 0 {
		text += fmt.Sprintf(": its header announces %d", e.Announced)
	}
	return text
}

// Is says that the error is an ErrTooLarge.
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }

// StallError is a connection that a watchdog ended. errors.Is finds ErrStalled in it.
type StallError struct {
	Garbage Garbage // what came on the connection and was no message, and is not taken yet
	Notices int     // that came on the connection
	Notice  string  // the last of them, cut to 80 bytes; the relay's words
	Pings   uint64  // that came on the connection
	Frames  uint64  // text frames that came while it was waited, whatever they were; 0 also where nobody counted
}

func (e *StallError) Error() string {
	var came []string
	count := func(n uint64, one, more string) {
		if n == 1 {
			came = append(came, one)
		} else if n > 1 {
			came = append(came, strconv.FormatUint(n, 10)+more)
		}
	}
	count(uint64(e.Notices), fmt.Sprintf("a NOTICE: %q", e.Notice), fmt.Sprintf(" NOTICEs, the last %q", e.Notice))
	if e.Garbage.Count > 0 {
		came = append(came, e.Garbage.String())
	}
	if len(came) == 0 {
		count(e.Frames, "1 other frame", " other frames")
	}
	if count(e.Pings, "1 ping", " pings"); len(came) == 0 {
		return ErrStalled.Error()
	}
	return "the relay stalled: what was waited for did not arrive in time, but " + strings.Join(came, "; ")
}

// Add joins what came on two connections.
func (e *StallError) Add(o *StallError) {
	if e.Garbage.Add(o.Garbage); o.Notices > 0 {
		e.Notice = o.Notice
	}
	e.Notices, e.Pings, e.Frames = e.Notices+o.Notices, e.Pings+o.Pings, e.Frames+o.Frames
}

// Is says that the error is an ErrStalled.
func (e *StallError) Is(target error) bool { return target == ErrStalled }

// CloseError is the relay's close frame (RFC 6455 section 7.4). Code is 1005 where the frame
// carried none. Reason is raw text of at most 123 bytes, the most that a close frame holds; it may
// be anything, control characters included.
type CloseError struct {
	Code   int
	Reason string
}

func (e *CloseError) Error() string {
	text := "the relay closed the connection with code " + strconv.Itoa(e.Code)
	if e.Reason != "" {
		text += ": " + strconv.Quote(e.Reason)
	}
	return text
}

// StatusError is an HTTP answer to the handshake that is not 101 Switching Protocols.
type StatusError struct {
	Code int // HTTP status
	// Body is the beginning of the answer's body, raw, at most 1,024 bytes.
	Body string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the server answered HTTP status %d instead of upgrading to WebSocket (101)", e.Code)
}
