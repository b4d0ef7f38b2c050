package synthetic

import (
	"slices"

	"relaybench/corpus"
)

// Contact lists hold 10 to 130 keys.
const (
	minFollows = 10
	maxFollows = 130
	// A renewed list has lost its two oldest keys and won four.
	followsLost, followsNet = 2, 2
	maxFollowCandidates     = maxFollows + followsLost*maxVersion
)

// profile writes who an author is (NIP-01, NIP-24). A renewal has another text about the person.
func (b *eventBuilder) profile(e *corpus.Event, planned *plannedEvent) {
	b.r.restart(derive(b.g.seed, "author", int(planned.author)))
	name := string(appendCoined(nil, b.r))
	display := string(appendCoined(nil, b.r))
	if b.r.chance(30) {
		display += " " + pickOne(b.r, words.Emojis)
	}
	lang := pickWeighted(b.r, languages)
	b.r.restart(derive(b.g.seed, "about", int(planned.author)*(maxVersion+1)+int(planned.version)))
	about := appendProse(nil, b.r, lang, b.r.between(3, 40), true)

	text := append(b.text[:0], '{')
	for i, field := range []struct {
		percent     int // of the profiles that have it; 0 is all
		name, value string
	}{
		{0, "name", name}, {0, "display_name", display}, {0, "about", string(about)}, {0, "picture", "https://media.example/avatar/" + name + ".png"},
		{50, "banner", "https://media.example/banner/" + name + ".jpg"}, {60, "nip05", name + "@people.example"}, {70, "lud16", name + "@wallet.example"},
	} {
		if field.percent > 0 && !b.r.chance(field.percent) {
			continue
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(corpus.AppendString(text, field.name), ':')
		text = corpus.AppendString(text, field.value)
	}
	text = append(text, '}')
	e.Content = string(text)
	b.text = text
}

// contacts writes whom an author follows (NIP-02). A renewal follows most of the same keys.
func (b *eventBuilder) contacts(e *corpus.Event, planned *plannedEvent) {
	author, version := int(planned.author), int(planned.version)
	b.r.restart(derive(b.g.seed, "follows", author))
	count := minFollows + b.r.below(1+b.r.below(1+maxFollows-minFollows))
	count = min(maxFollows, count+version*followsNet)
	first := version * followsLost
	// The keys come in the same order for every version.
	for _, key := range b.drawFollows(author, first+count)[first:] {
		follow := corpus.Tag{"p", b.g.keys.hex[key]}
		if b.r.chance(15) {
			follow = append(follow, b.relayHint(uint16(key)))
			if b.r.chance(30) {
				follow = append(follow, string(appendCoined(nil, b.r)))
			}
		}
		e.Tags = append(e.Tags, follow)
	}
}

// drawFollows returns n different keys other than the author's own, by popularity. Strangers come
// last, where authors run out.
func (b *eventBuilder) drawFollows(author, n int) []int {
	clear(b.seen)
	b.seen[author] = true
	follows := make([]int, 0, n)
	add := func(key int) {
		if !b.seen[key] && len(follows) < n {
			b.seen[key] = true
			follows = append(follows, key)
		}
	}
	// As many attempts for every n, so that a longer list begins as a shorter one does.
	for attempt := 0; attempt < 4*maxFollowCandidates && len(follows) < n; attempt++ {
		add(b.g.popularity.draw(b.r))
	}
	authors := b.g.keys.authors
	start := b.r.below(authors)
	for i := range authors {
		add((start + i) % authors)
	}
	for key := authors + walletCount; len(follows) < n; key++ {
		add(key)
	}
	return follows
}

// relayList writes where an author reads and writes (NIP-65).
func (b *eventBuilder) relayList(e *corpus.Event) {
	var chosen []string
	for range b.r.between(2, 10) {
		if name := pickOne(b.r, words.Relays); !slices.Contains(chosen, name) {
			chosen = append(chosen, name)
		}
	}
	for _, name := range chosen {
		tag := corpus.Tag{"r", "wss://" + name + ".example"}
		if use := pickWeighted(b.r, relayUses); use != "" {
			tag = append(tag, use)
		}
		e.Tags = append(e.Tags, tag)
	}
}

// relayUses are the markers of NIP-65; none means both.
var relayUses = []weighted[string]{{60, ""}, {20, "read"}, {20, "write"}}
