package corpus

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
)

// castagnoli is the CRC that processors compute at memory's speed.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum finds damage to an events file. It is made for being checked on all cores whenever the
// file is opened: the CRC-32C of each chunk of whole lines, as splitAtNewlines cuts them, and the
// first 16 bytes of the sha256 over those, big-endian, in hexadecimal digits.
type checksum struct {
	chunk uint32
	size  int
	sums  []uint32
}

func newChecksum() *checksum { return new(checksum) }

// addLine takes a line without its newline.
func (c *checksum) addLine(line []byte) {
	c.chunk = crc32.Update(c.chunk, castagnoli, line)
	c.chunk = crc32.Update(c.chunk, castagnoli, newline)
	if c.size += len(line) + 1; c.size >= indexChunk {
		c.endChunk()
	}
}

var newline = []byte{'\n'}

func (c *checksum) endChunk() {
	c.sums = append(c.sums, c.chunk)
	c.chunk, c.size = 0, 0
}

// String is called once, after the last line.
func (c *checksum) String() string {
	if c.size > 0 {
		c.endChunk()
	}
	return checksumOf(c.sums)
}

func checksumOf(chunks []uint32) string {
	list := make([]byte, 0, 4*len(chunks))
	for _, sum := range chunks {
		list = binary.BigEndian.AppendUint32(list, sum)
	}
	all := sha256.Sum256(list)
	return hex.EncodeToString(all[:16])
}
