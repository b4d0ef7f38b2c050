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
		display += " " + pickOne(b.r, emojis)
	}
	lang := pickWeighted(b.r, languages)
	b.r.restart(derive(b.g.seed, "about", int(planned.author)*(maxVersion+1)+int(planned.version)))
	about := appendProse(nil, b.r, lang, b.r.between(3, 40), true)

	text := append(b.text[:0], `{"name":`...)
	text = corpus.AppendString(text, name)
	text = append(text, `,"display_name":`...)
	text = corpus.AppendString(text, display)
	text = append(text, `,"about":`...)
	text = corpus.AppendString(text, string(about))
	text = append(text, `,"picture":`...)
	text = corpus.AppendString(text, "https://media.example/avatar/"+name+".png")
	if b.r.chance(50) {
		text = append(text, `,"banner":`...)
		text = corpus.AppendString(text, "https://media.example/banner/"+name+".jpg")
	}
	if b.r.chance(60) {
		text = append(text, `,"nip05":`...)
		text = corpus.AppendString(text, name+"@people.example")
	}
	if b.r.chance(70) {
		text = append(text, `,"lud16":`...)
		text = corpus.AppendString(text, name+"@wallet.example")
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
	for key := b.g.keys.firstStranger(); len(follows) < n; key++ {
		add(key)
	}
	return follows
}

// relayList writes where an author reads and writes (NIP-65).
func (b *eventBuilder) relayList(e *corpus.Event) {
	var chosen []string
	for range b.r.between(2, 10) {
		if name := pickOne(b.r, relayNames); !slices.Contains(chosen, name) {
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
