package corpus

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"hash/crc32"
	"strconv"
)

// A canonical line has its first fields at fixed places, so that the index is built without parsing
// JSON:
//
//	{"id":"<64>","pubkey":"<64>","created_at":<n>,"kind":<n>,"tags":[…],"content":"…","sig":"<128>"}
const (
	idAt        = len(`{"id":"`)
	pubKeyAt    = idAt + 64 + len(`","pubkey":"`)
	createdAtAt = pubKeyAt + 64 + len(`","created_at":`)
	tailLength  = len(`","sig":"`) + 128 + len(`"}`)
	shortest    = createdAtAt + len(`0,"kind":0,"tags":[],"content":"`) + tailLength
)

// indexChunk is a goroutine's share of the file. Manifests' checksums are over such chunks.
const indexChunk = 4 << 20

// lineError names a line, counted from 1 as editors count, and what is wrong with it.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return "line " + strconv.Itoa(e.line) + ": " + e.err.Error() }
func (e *lineError) Unwrap() error { return e.err }

// indexLines builds the index of canonical NDJSON on all cores, checks form and order, and computes
// the checksum. It calls done, from any goroutine, with each part of text that it has read, so that
// a long text need not be in memory whole. The error names the first wrong line.
func indexLines(text []byte, done func(part []byte)) ([]Entry, string, error) {
	chunks := splitAtNewlines(text, indexChunk)
	starts, sums := make([]int, len(chunks)+1), make([]uint32, len(chunks))
	InParallel(len(chunks), func(i int) {
		starts[i+1] = bytes.Count(chunks[i], newline)
		sums[i] = crc32.Checksum(chunks[i], castagnoli)
		done(chunks[i])
	})
	offsets := make([]int64, len(chunks)+1)
	for i, chunk := range chunks {
		starts[i+1] += starts[i]
		offsets[i+1] = offsets[i] + int64(len(chunk))
	}
	total := starts[len(chunks)]
	if !bytes.HasSuffix(text, newline) {
		return nil, "", &lineError{total + 1, errors.New("the last line has no newline")}
	}
	// A file of newlines alone must not be able to demand an index many times its size.
	entries := make([]Entry, min(total, len(text)/shortest+1))
	err := TryInParallel(context.Background(), len(chunks), func(i int) error {
		defer done(chunks[i])
		return indexInto(entries, starts[i], chunks[i], offsets[i])
	})
	if err != nil {
		return nil, "", err
	}
	for i := 1; i < len(entries); i++ {
		if !inOrder(&entries[i-1], &entries[i]) {
			return nil, "", &lineError{i + 1, errors.New("not in corpus order (created_at ascending, then id ascending, no id twice)")}
		}
	}
	return entries, checksumOf(sums), nil
}

func indexInto(entries []Entry, start int, chunk []byte, offset int64) error {
	for n := start; len(chunk) > 0; n++ {
		end := bytes.IndexByte(chunk, '\n')
		if n >= len(entries) {
			return &lineError{n + 1, errors.New("too short for an event")}
		}
		if err := entries[n].Read(chunk[:end]); err != nil {
			return &lineError{n + 1, err}
		}
		entries[n].Offset = offset
		offset += int64(end) + 1
		chunk = chunk[end+1:]
	}
	return nil
}

func inOrder(a, b *Entry) bool {
	return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), bytes.Compare(a.ID[:], b.ID[:])) < 0
}

// Read reads all but Offset from the fixed fields of one canonical line, without its newline. Tags
// and content are not looked at.
func (e *Entry) Read(line []byte) error {
	if len(line) < shortest {
		return errors.New("too short for an event")
	}
	if uint64(len(line)) > 1<<32-1 {
		return errors.New("over 4 GiB long")
	}
	e.Length = uint32(len(line))
	if string(line[:idAt]) != `{"id":"` || !decodeHex(e.ID[:], line[idAt:idAt+64]) {
		return errors.New("no id of 64 lower-case hexadecimal digits where canonical JSON has it")
	}
	if string(line[idAt+64:pubKeyAt]) != `","pubkey":"` || !decodeHex(e.PubKey[:], line[pubKeyAt:pubKeyAt+64]) {
		return errors.New("no pubkey of 64 lower-case hexadecimal digits where canonical JSON has it")
	}
	if string(line[pubKeyAt+64:createdAtAt]) != `","created_at":` {
		return errors.New("no created_at where canonical JSON has it")
	}
	createdAt, rest, ok := cutNumber(line[createdAtAt:])
	if !ok {
		return errors.New("created_at is not a canonical integer")
	}
	e.CreatedAt = createdAt
	kindText, found := bytes.CutPrefix(rest, []byte(`,"kind":`))
	kind, rest, ok := cutNumber(kindText)
	if !found || !ok || kind > 65535 || !bytes.HasPrefix(rest, []byte(`,"tags":[`)) {
		return errors.New("kind is not a canonical integer up to 65,535 followed by tags")
	}
	e.Kind = uint16(kind)
	tail := line[len(line)-tailLength:]
	var sig Signature
	if string(tail[:9]) != `","sig":"` || string(tail[9+128:]) != `"}` || !decodeHex(sig[:], tail[9:9+128]) {
		return errors.New("does not end in a sig of 128 lower-case hexadecimal digits")
	}
	return nil
}

// cutNumber reads an integer of canonical JSON: at most 18 digits without a leading zero.
func cutNumber(b []byte) (n int64, rest []byte, ok bool) {
	i := 0
	for i < len(b) && i < 19 && '0' <= b[i] && b[i] <= '9' {
		n = n*10 + int64(b[i]-'0')
		i++
	}
	return n, b[i:], 0 < i && i < 19 && (i == 1 || b[0] != '0')
}

// splitAtNewlines cuts text into pieces of about size bytes, up to its last newline.
func splitAtNewlines(text []byte, size int) [][]byte {
	var chunks [][]byte
	for len(text) > 0 {
		end := min(size, len(text))
		next := bytes.IndexByte(text[end-1:], '\n')
		if next < 0 {
			if next = bytes.LastIndexByte(text[:end], '\n'); next < 0 {
				break
			}
			next -= end - 1
		}
		end += next
		chunks = append(chunks, text[:end:end])
		text = text[end:]
	}
	return chunks
}

// summary sums up events, added in corpus order, for the manifest.
type summary struct {
	events         int
	bytes          int64
	kinds          map[uint16]int
	oldest, newest int64
	ids            hash.Hash
	digits         [64]byte
}

func newSummary() *summary { return &summary{ids: sha256.New(), kinds: make(map[uint16]int)} }

func (t *summary) add(e *Entry) {
	if t.events == 0 {
		t.oldest = e.CreatedAt
	}
	t.newest = e.CreatedAt
	t.events++
	t.bytes += int64(e.Length) + 1
	t.kinds[e.Kind]++
	hex.Encode(t.digits[:], e.ID[:])
	t.ids.Write(t.digits[:])
}

// fill sets the manifest's fields that follow from the events.
func (t *summary) fill(m *Manifest) {
	m.Events, m.Bytes = t.events, t.bytes
	m.OldestUnix, m.NewestUnix = t.oldest, t.newest
	m.Fingerprint = hex.EncodeToString(t.ids.Sum(nil))
	m.Kinds = make(map[string]int, len(t.kinds))
	for kind, n := range t.kinds {
		m.Kinds[strconv.Itoa(int(kind))] = n
	}
}
