package prepare

import (
	"context"
	"fmt"
	"testing"

	"relaybench/corpus"
	"relaybench/corpus/synthetic"
)

// controls are the characters that NIP-01 gives no escape of their own.
func controls() (all []string) {
	for c := range 0x20 {
		switch c {
		case '\n', '\r', '\t', '\b', '\f':
		default:
			all = append(all, string(rune(c)))
		}
	}
	return append(all, "\x7f")
}

func TestControlCharactersAreKeptOutUnlessAskedFor(t *testing.T) {
	t.Parallel()
	event := func(i int, content string, tags ...corpus.Tag) corpus.Event {
		return signed(corpus.Event{CreatedAt: int64(1_700_000_000 + i), Kind: 1, Tags: tags, Content: content})
	}
	var bad, good []corpus.Event
	for i, c := range controls() {
		bad = append(bad, event(i, "in "+c+" content"), event(i, c), event(i, "", corpus.Tag{"t", "a" + c}), event(i, "", corpus.Tag{"t", "a", "b", c}), event(i, "", corpus.Tag{c}))
	}
	for i, content := range []string{"\n\r\t\b\f\"\\", `\u0001`, `\\u0001`, `\x7f \u007f`, "\u0080\u009f\u200b\u2028", `\\\u001f\`, "\u00a0 \u00ff"} {
		good = append(good, event(i, content), event(i, "", corpus.Tag{"t", content, content}))
	}
	all := ndjson(texts(append(good, bad...)...)...)
	c := build(t, all, Options{})
	checkHolds(t, c, good)
	checkDropped(t, c, map[DropReason]int{DropControlCharacter: len(bad)})
	if c.Manifest().Options.KeepControlCharacters {
		t.Error("the manifest says that they are kept")
	}
	every := build(t, all, Options{KeepControlCharacters: true})
	checkHolds(t, every, append(good, bad...))
	checkDropped(t, every, nil)
	if !every.Manifest().Options.KeepControlCharacters {
		t.Error("the manifest does not say that they are kept")
	}
	for _, e := range bad {
		if why := (&Options{}).Drop(&e, e.AppendJSON(nil)); why != DropControlCharacter {
			t.Errorf("a download would keep %q (%s)", e.Content, why)
		}
	}
}

func TestASyntheticCorpusHasNoControlCharacters(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		err := synthetic.Spec{Events: 400, Seed: seed, BaseTime: 1_780_272_000}.Generate(context.Background(), nil, func(e *corpus.Event) error {
			if line := e.AppendJSON(nil); (&Options{}).Drop(e, line) == DropControlCharacter {
				return fmt.Errorf("%s", line)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestDoubledBackslashesAreUndoneAndCounted(t *testing.T) {
	t.Parallel()
	events := mixtureEvents()
	var rows [][]byte
	n := 0
	for _, text := range texts(events...) {
		rows = append(rows, doubled(text))
		if string(doubled(text)) != string(text) {
			n++
		}
	}
	// One is twice there, once as it was; one has a control character; one is forged, and stays so.
	forged := events[1]
	forged.Content += "!"
	control := signed(corpus.Event{CreatedAt: 5, Kind: 1, Content: "\x01"})
	rows = append(rows, events[2].AppendJSON(nil), doubled(forged.AppendJSON(nil)), doubled(control.AppendJSON(nil)))
	c := build(t, ndjson(rows...), Options{})
	checkHolds(t, c, events)
	checkDropped(t, c, map[DropReason]int{DropDuplicate: 1, DropBadID: 1, DropControlCharacter: 1})
	if m := c.Manifest(); m.Undoubled != n || m.FirstUnparseable != nil {
		t.Errorf("%d events were undone, of %d; unparseable: %v", m.Undoubled, n, m.FirstUnparseable)
	}
}
