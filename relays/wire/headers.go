package wire

import "encoding/binary"

// headers follows the frames in a stream of bytes by their headers (RFC 6455 section 5.2), so that
// a message over the limit is refused as soon as a header announces it. The library counts what has
// come, and would wait for a message that never comes whole.
type headers struct {
	limit    int64
	left     int64    // bytes of the payload that are still to come
	head     [10]byte // of a header, as far as it has come
	have     int
	message  int64 // bytes announced of the message so far, over its fragments
	deflated bool  // the message is compressed (RFC 7692)
	lost     bool  // what came is no frame: the library says why
}

// The parts of a header.
const (
	firstFin, firstDeflated, firstOpcode = 0x80, 0x40, 0x0f
	secondMasked, secondLength           = 0x80, 0x7f
	opcodeContinuation, opcodeBinary     = 0, 2
)

// pass goes on with what was read. It returns how many of the bytes may be handed on; where that is
// not all, large says which message begins there.
func (h *headers) pass(p []byte) (n int, large *TooLargeError) {
	for n < len(p) {
		if h.lost {
			return len(p), nil
		}
		if h.left > 0 {
			skip := min(h.left, int64(len(p)-n))
			h.left -= skip
			n += int(skip)
			continue
		}
		h.head[h.have] = p[n]
		h.have++
		n++
		size, length := FrameHeader(h.head[:h.have])
		if h.have < size {
			continue
		}
		if length < 0 {
			h.lost = true
			continue
		}
		if large := h.begin(length); large != nil {
			return max(0, n-h.have), large
		}
		h.have = 0
		if h.left = length; h.head[1]&secondMasked != 0 {
			h.left += 4 // as if the mask's key were payload; length is within the limit, or the library refuses the frame
		}
	}
	return n, nil
}

// FrameHeader returns how many bytes a frame's header takes without its mask, and, where so many
// are there, the length of the payload that it announces: below 0 where none can be so long.
func FrameHeader(head []byte) (size int, payload int64) {
	if len(head) < 2 {
		return 2, 0
	}
	switch n := head[1] & secondLength; {
	case n == 126 && len(head) < 4:
		return 4, 0
	case n == 126:
		return 4, int64(binary.BigEndian.Uint16(head[2:]))
	case n == 127 && len(head) < 10:
		return 10, 0
	case n == 127:
		return 10, int64(binary.BigEndian.Uint64(head[2:]))
	default:
		return 2, int64(n)
	}
}

// begin judges the frame whose header is there.
func (h *headers) begin(length int64) *TooLargeError {
	first := h.head[0]
	switch opcode := first & firstOpcode; {
	case opcode > opcodeBinary: // the library bounds control frames
		h.lost = length > 1<<16
		return nil
	case opcode != opcodeContinuation:
		h.message, h.deflated = 0, first&firstDeflated != 0
	}
	limit := h.limit
	if h.deflated { // what cannot be compressed grows by a little; once inflated the library counts
		limit += limit/64 + 1024
	}
	if length > limit-h.message {
		return &TooLargeError{Announced: h.message + min(length, maxAnnounced-h.message), Limit: h.limit}
	}
	h.message += length
	return nil
}

const maxAnnounced = 1<<63 - 1
