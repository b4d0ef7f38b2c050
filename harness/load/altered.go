package load

import (
	"bytes"

	"relaybench/corpus"
)

// Altered says what is wrong with event i of the corpus as a relay sent it, "" for nothing: every
// field must be as it was signed, whatever the JSON looks like.
func Altered(c *corpus.Corpus, i int, text []byte) string {
	if bytes.Equal(text, c.Raw(i)) {
		return ""
	}
	e, err := corpus.ParseEvent(text)
	if err != nil {
		return err.Error()
	}
	if !bytes.Equal(e.AppendJSON(nil), c.Raw(i)) {
		return "a field is not as it was signed"
	}
	return ""
}
