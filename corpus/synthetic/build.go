package synthetic

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"relaybench/corpus"
)

// eventBuilder turns planned events into real ones. An event depends on the plan, on the keys, and
// on the ids (for reposts: the signatures too) of the events it refers to, and on nothing else: it
// can be built at any time and again.
type eventBuilder struct {
	g    *generation
	r    *randStream
	text []byte // scratch
	seen []bool // by key, for contact lists
}

func newEventBuilder(g *generation) *eventBuilder {
	return &eventBuilder{g: g, r: newRandStream(g.seed), seen: make([]bool, len(g.keys.secret))}
}

// signed builds and signs the event at an index of the plan.
func (b *eventBuilder) signed(index int) (corpus.Event, error) {
	e, err := b.build(index)
	if err != nil {
		return corpus.Event{}, err
	}
	err = b.g.keys.secret[b.signer(index)].Sign(&e, derive(b.g.seed, "aux", index))
	return e, err
}

// signer is the index of the key that signs: of a zap receipt, the payment service's (NIP-57).
func (b *eventBuilder) signer(index int) int {
	planned := &b.g.plan[index]
	if planned.form == formZap {
		return b.g.keys.wallet(int(b.g.plan[planned.target].author))
	}
	return int(planned.author)
}

// build makes everything but id and signature.
func (b *eventBuilder) build(index int) (corpus.Event, error) {
	planned := &b.g.plan[index]
	b.r.restart(derive(b.g.seed, "event", index))
	e := corpus.Event{
		PubKey:    b.g.keys.secret[b.signer(index)].PubKey,
		CreatedAt: b.createdAt(index),
		Kind:      planned.form.kind(),
		Tags:      []corpus.Tag{},
	}
	switch planned.form {
	case formNote:
		b.note(&e)
	case formReply:
		b.reply(&e, index)
	case formRepost:
		return e, b.repost(&e, int(planned.target))
	case formReaction:
		b.reaction(&e, int(planned.target))
	case formZap:
		return e, b.zap(&e, index)
	case formArticle:
		b.article(&e, index)
	case formDirect:
		b.direct(&e, int(planned.author))
	case formProfile:
		b.profile(&e, planned)
	case formContacts:
		b.contacts(&e, planned)
	case formRelays:
		b.relayList(&e)
	}
	return e, nil
}

func (b *eventBuilder) createdAt(index int) int64 { return b.g.start + int64(b.g.plan[index].at) }

// authorHex is the public key of an event's author in hexadecimal.
func (b *eventBuilder) authorHex(index int) string { return b.g.keys.hex[b.g.plan[index].author] }

// relayHint is where an author is said to publish.
func (b *eventBuilder) relayHint(author uint16) string {
	return "wss://" + words.Relays[int(author)%len(words.Relays)] + ".example"
}

// note writes a root note (NIP-01), some with a picture, a mention (NIP-27) or hashtags.
func (b *eventBuilder) note(e *corpus.Event) {
	text := appendNote(b.text[:0], b.r)
	if b.r.chance(10) {
		var name [16]byte
		b.r.fill(name[:])
		text = append(text, "\nhttps://media.example/"...)
		text = hex.AppendEncode(text, name[:])
		text = append(text, ".jpg"...)
	}
	if b.r.chance(8) {
		mentioned := b.g.popularity.draw(b.r)
		text = append(text, " nostr:"...)
		text = corpus.AppendNpub(text, b.g.keys.secret[mentioned].PubKey)
		e.Tags = append(e.Tags, corpus.Tag{"p", b.g.keys.hex[mentioned]})
	}
	b.finishNote(e, text)
}

// finishNote adds hashtags to 15 of 100 notes and keeps the text.
func (b *eventBuilder) finishNote(e *corpus.Event, text []byte) {
	if b.r.chance(15) {
		for _, hashtag := range b.drawHashtags(b.r.between(1, 3)) {
			text = append(text, ' ')
			text = appendHashtag(text, b.r, hashtag)
			e.Tags = append(e.Tags, corpus.Tag{"t", hashtag})
		}
	}
	e.Content = string(text)
	b.text = text
}

// drawHashtags returns up to n different hashtags.
func (b *eventBuilder) drawHashtags(n int) []string {
	var drawn []string
	for range n {
		if hashtag := words.Hashtags[b.g.hashtags.draw(b.r)]; !slices.Contains(drawn, hashtag) {
			drawn = append(drawn, hashtag)
		}
	}
	return drawn
}

// maxParticipants bounds the p tags of a reply deep in a thread.
const maxParticipants = 10

// reply writes a note within a thread, with marked e tags and p tags of who took part (NIP-10).
func (b *eventBuilder) reply(e *corpus.Event, index int) {
	planned := &b.g.plan[index]
	root, parent := int(planned.root), int(planned.target)
	e.Tags = append(e.Tags, b.marked(root, "root"))
	if parent != root {
		e.Tags = append(e.Tags, b.marked(parent, "reply"))
	}
	participants := []uint16{b.g.plan[parent].author}
	for above := b.g.plan[parent].target; above != noEvent && len(participants) < maxParticipants; above = b.g.plan[above].target {
		if author := b.g.plan[above].author; author != planned.author && !slices.Contains(participants, author) {
			participants = append(participants, author)
		}
	}
	for _, author := range participants {
		e.Tags = append(e.Tags, corpus.Tag{"p", b.g.keys.hex[author]})
	}
	b.finishNote(e, appendNote(b.text[:0], b.r))
}

func (b *eventBuilder) marked(index int, marker string) corpus.Tag {
	return corpus.Tag{"e", b.g.ids[index].String(), b.relayHint(b.g.plan[index].author), marker, b.authorHex(index)}
}

// repost embeds a note (NIP-18).
func (b *eventBuilder) repost(e *corpus.Event, target int) error {
	original, err := b.build(target)
	if err != nil {
		return err
	}
	original.ID, original.Sig = b.g.ids[target], b.g.signatures[target]
	e.Tags = append(e.Tags,
		corpus.Tag{"e", original.ID.String(), b.relayHint(b.g.plan[target].author)},
		corpus.Tag{"p", b.authorHex(target)})
	b.text = original.AppendJSON(b.text[:0])
	e.Content = string(b.text)
	return nil
}

// reaction likes a note, or says something else in an emoji, some of them custom (NIP-25, NIP-30).
func (b *eventBuilder) reaction(e *corpus.Event, target int) {
	e.Tags = append(e.Tags,
		corpus.Tag{"e", b.g.ids[target].String(), b.relayHint(b.g.plan[target].author)},
		corpus.Tag{"p", b.authorHex(target)},
		corpus.Tag{"k", "1"})
	e.Content = pickWeighted(b.r, reactions)
	if name, custom := strings.CutPrefix(e.Content, ":"); custom {
		name = strings.TrimSuffix(name, ":")
		e.Tags = append(e.Tags, corpus.Tag{"emoji", name, "https://media.example/emoji/" + name + ".png"})
	}
}

// zap writes a payment's receipt, with the signed request in its description tag (NIP-57).
func (b *eventBuilder) zap(e *corpus.Event, index int) error {
	planned := &b.g.plan[index]
	target := int(planned.target)
	sats := pickWeighted(b.r, zapAmounts)
	id, payee := corpus.Tag{"e", b.g.ids[target].String()}, corpus.Tag{"p", b.authorHex(target)}

	relays := corpus.Tag{"relays"}
	for i := range b.r.between(1, 3) {
		relays = append(relays, b.relayHint(planned.author+uint16(i)))
	}
	request := corpus.Event{
		CreatedAt: e.CreatedAt - int64(b.r.between(1, 30)),
		Kind:      9734,
		Tags:      []corpus.Tag{relays, {"amount", sats + "000"}, payee, id},
		Content:   pickWeighted(b.r, zapComments),
	}
	if err := b.g.keys.secret[planned.author].Sign(&request, derive(b.g.seed, "request aux", index)); err != nil {
		return fmt.Errorf("zap request: %w", err)
	}
	invoice := appendInvoice(b.text[:0], b.r, request.CreatedAt, sats)
	var preimage [32]byte
	b.r.fill(preimage[:])
	e.Tags = append(e.Tags,
		payee,
		corpus.Tag{"P", b.authorHex(index)},
		id,
		corpus.Tag{"bolt11", string(invoice)},
		corpus.Tag{"description", string(request.AppendJSON(nil))},
		corpus.Tag{"preimage", hex.EncodeToString(preimage[:])})
	b.text = invoice
	return nil
}

// article writes a long text (NIP-23). An edit is the original with another section.
func (b *eventBuilder) article(e *corpus.Event, index int) {
	original := index
	if target := b.g.plan[index].target; target != noEvent {
		original = int(target)
	}
	// All that edits share comes from the original's stream.
	b.r.restart(derive(b.g.seed, "article", original))
	lang := pickWeighted(b.r, languages)
	title := string(appendProse(nil, b.r, lang, b.r.between(3, 9), false))
	summary := string(appendProse(nil, b.r, lang, b.r.between(6, 20), false))
	var unique [4]byte
	b.r.fill(unique[:])
	e.Tags = append(e.Tags,
		corpus.Tag{"d", slug(title) + hex.EncodeToString(unique[:])},
		corpus.Tag{"title", title},
		corpus.Tag{"summary", summary},
		corpus.Tag{"published_at", strconv.FormatInt(b.createdAt(original), 10)})
	for _, hashtag := range b.drawHashtags(b.r.between(1, 4)) {
		e.Tags = append(e.Tags, corpus.Tag{"t", hashtag})
	}
	text := appendArticle(b.text[:0], b.r, lang, title)
	if original != index {
		b.r.restart(derive(b.g.seed, "event", index))
		text = append(text, "\n\n## Update\n\n"...)
		text = appendProse(text, b.r, lang, b.r.between(10, 50), false)
	}
	e.Content = string(text)
	b.text = text
}

// direct writes an encrypted message (NIP-04): cipher blocks of 16 bytes, of which random ones
// cannot be told from real ones.
func (b *eventBuilder) direct(e *corpus.Event, author int) {
	peer := b.g.popularity.draw(b.r)
	if peer == author {
		peer = (author + 1) % b.g.keys.authors
	}
	e.Tags = append(e.Tags, corpus.Tag{"p", b.g.keys.hex[peer]})
	blocks := make([]byte, 16*(2+b.r.below(b.r.below(62)+1)))
	b.r.fill(blocks)
	var iv [16]byte
	b.r.fill(iv[:])
	text := base64.StdEncoding.AppendEncode(b.text[:0], blocks)
	text = append(text, "?iv="...)
	text = base64.StdEncoding.AppendEncode(text, iv[:])
	e.Content = string(text)
	b.text = text
}
