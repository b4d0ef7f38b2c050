package reference

import (
	"encoding/binary"
	"fmt"
)

// appendBlock encodes a sorted list: of each entry how far its group is from the one before, its time, half id, Seq, kind and author byte.
func appendBlock(dst []byte, list []entry) []byte {
	group := uint64(0)
	for i := range list {
		e := &list[i]
		dst = binary.AppendUvarint(dst, e.group-group)
		dst = binary.AppendUvarint(dst, ^e.late)
		dst = binary.BigEndian.AppendUint64(dst, e.id[0])
		dst = binary.BigEndian.AppendUint64(dst, e.id[1])
		dst = binary.AppendUvarint(dst, e.event>>8)
		dst = append(dst, byte(e.event))
		group = e.group
	}
	return dst
}

// decodeBlock reads what appendBlock wrote.
func decodeBlock(text []byte) ([]entry, error) {
	list := make([]entry, 0, len(text)/20)
	group := uint64(0)
	for rest := text; len(rest) > 0; {
		var e entry
		step, n := binary.Uvarint(rest)
		if n <= 0 {
			return nil, brokenBlock(text, rest)
		}
		group += step
		e.group = group
		rest = rest[n:]
		createdAt, n := binary.Uvarint(rest)
		if n <= 0 || len(rest) < n+16 {
			return nil, brokenBlock(text, rest)
		}
		e.late = ^createdAt
		rest = rest[n:]
		e.id = [2]uint64{binary.BigEndian.Uint64(rest), binary.BigEndian.Uint64(rest[8:])}
		rest = rest[16:]
		event, n := binary.Uvarint(rest)
		if n <= 0 || len(rest) < n+1 {
			return nil, brokenBlock(text, rest)
		}
		e.event = event<<8 | uint64(rest[n])
		rest = rest[n+1:]
		list = append(list, e)
	}
	if len(list) == 0 {
		return nil, brokenBlock(text, text)
	}
	return list, nil
}

func brokenBlock(text, rest []byte) error {
	return fmt.Errorf("index block of %d bytes cannot be read at byte %d: the store is damaged", len(text), len(text)-len(rest))
}
