package preflight

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"relaybench/corpus"
	"relaybench/relays/client"
	"relaybench/relays/wire"
	"relaybench/results"
)

// check is one question about how a relay behaves.
type check struct {
	code string
	// stated is set where a relay that does otherwise does the same work as the others all the
	// same: what breaks a NIP's word without changing what a figure means, as relays in wide use do
	// here and there.
	stated bool
	alone  bool // it asks when nothing else does, and in the order of the table
	ask    func(*checker)
}

// probe is one question about what a relay can do. Its answer is told to people and never held
// against the relay.
type probe struct {
	name string
	nip  int // what it asks of, 0 for none
	ask  func(*checker) (spoken bool, text string)
}

// NIP is the name of the probe of a NIP, for Options.Only.
func NIP(number int) string { return "NIP-" + strconv.Itoa(number) }

// table lists the checks. The first decides whether the others can be asked at all; the one on
// throttling comes last, since what it does may set off a limit.
var table = []check{
	// An event is acknowledged, found by its id, and every field is as it was signed (NIP-01).
	{code: results.CodeStores, ask: func(c *checker) {
		c.roundTrip(c.event(1, c.recent(0), "A plain note.", corpus.Tag{"t", "relaybench"},
			corpus.Tag{"p", c.key.PubKey.String(), "", "mention"}))
	}},
	// Content and tags come back to the byte, white space at the ends, empty values and tags of
	// one item included.
	{code: results.CodeText, ask: func(c *checker) {
		c.roundTrip(c.event(1, c.recent(0), " \t\n"+text+"\n  ", corpus.Tag{"t", "żółć"}, corpus.Tag{"subject", " " + text + " "},
			corpus.Tag{"x", ""}, corpus.Tag{"y", "", "between", ""}, corpus.Tag{"alone"}))
	}},
	// NIP-01 forbids a tag without items as little as it has a use for it. Refusing it is told; an
	// event that comes back without it is not the one that was signed.
	{code: results.CodeEmptyTag, ask: func(c *checker) {
		err := try(func() {
			c.roundTrip(c.event(1, c.recent(0), "with a tag of no items", corpus.Tag{"t", "relaybench"}, corpus.Tag{},
				corpus.Tag{"subject", "tags"}))
		})
		if short := failure(err); short != nil && short.Cause == results.CauseRefused {
			short.Verdict = results.Stated
		}
		must(err)
	}},
	{code: results.CodeControl, stated: true, ask: controlCharacters},
	// A signature with one changed bit (BIP-340).
	{code: results.CodeBadSignature, ask: func(c *checker) {
		e := c.event(1, c.recent(0), "signed by somebody else")
		e.Sig[40] ^= 1
		c.refuses(forged(results.ForgedSignature, e))
	}},
	// Once the content is changed after signing, so that id and signature still fit each other and
	// only hashing the event again tells; and once the id alone, which a relay that signs for its
	// own hash takes and serves under the false id.
	{code: results.CodeBadID, ask: func(c *checker) {
		changed, renamed := c.event(1, c.recent(0), "what was signed"), c.event(1, c.recent(1), "under another name")
		changed.Content = "what was put in its place"
		renamed.ID[31] ^= 1
		c.refuses(forged(results.ForgedContent, changed), forged(results.ForgedID, renamed))
	}},
	// Fields that are absent or of another type.
	{code: results.CodeMalformed, stated: true, ask: func(c *checker) {
		var all []*forgery
		for i, edit := range []struct{ name, old, new string }{
			{results.NoSignature, `,"sig":"`, `,"not":"`},
			{results.NoCreatedAt, `"created_at":`, `"created":`},
			{results.ContentNumber, `"content":"7"`, `"content":7`},
			{results.ShortSignature, "", `"}`}, // the last byte of it is cut off
		} {
			f := forged(edit.name, c.event(1, c.recent(i), "7"))
			old := cmp.Or(edit.old, string(f.raw[len(f.raw)-len(`00"}`):]))
			f.raw = bytes.Replace(f.raw, []byte(old), []byte(edit.new), 1)
			all = append(all, f)
		}
		c.refuses(all...)
	}},
	// The corpus lies in the past, and all of it is to be stored.
	{code: results.CodeCorpusTime, ask: func(c *checker) {
		oldest, newest := c.event(1, c.o.Oldest, "from the corpus' beginning"), c.event(1, c.o.Newest, "from the corpus' end")
		if c.o.Newest > c.now { // a corpus that ends ahead of this clock: its newest event is the corpus' matter
			newest = oldest
		}
		c.seen.Counts = counts{"oldest": float64(oldest.CreatedAt), "newest": float64(newest.CreatedAt)}
		c.accepts(oldest, newest)
	}},
	// No window keeps old events out.
	{code: results.CodeYear2020, stated: true, ask: func(c *checker) {
		const newYear2020 = 1577836800
		c.accepts(c.event(1, newYear2020, "an old note"))
	}},
	// Relays may keep encrypted messages (NIP-04, NIP-59) from readers who are not
	// authenticated; then part of the corpus cannot be read back.
	{code: results.CodePrivateKinds, ask: func(c *checker) {
		to := corpus.Tag{"p", newKey().PubKey.String()}
		c.accepts(c.event(4, c.recent(0), "c2VjcmV0?iv=AAAAAAAAAAAAAAAAAAAAAA==", to), c.event(1059, c.recent(1), "c2VjcmV0", to))
	}},
	// The same event again gets an OK that names it, true or false.
	{code: results.CodeDuplicate, stated: true, ask: func(c *checker) {
		s, e := c.dial(), c.event(1, c.recent(0), "twice")
		s.store(e)
		got, silent := s.offer(e)
		if silent {
			s.meant()
			must(fail(results.CauseNoOK, counts{"ms": milliseconds(c.o.Wait)}, nil))
		}
		if !got.named {
			must(fail(results.CauseUnnamed, nil, texts{"reason": got.reason}))
		}
		c.seen.Counts, c.seen.Texts = counts{"accepted": number(got.accepted)}, texts{"reason": got.reason}
	}},
	{code: results.CodeFilterIDs, ask: filters(func(c *collection) []question {
		return []question{{nil, corpus.Filter{IDs: ids(c.one, c.four)}},
			{nil, corpus.Filter{IDs: ids(c.event(1, c.recent(0), "never published"))}}}
	})},
	{code: results.CodeFilterAuthors, ask: filters(func(c *collection) []question {
		return []question{{nil, c.mine()}, {nil, corpus.Filter{Authors: []corpus.PubKey{c.key.PubKey, c.other}}}}
	})},
	// Asks beside an author: kinds alone match whatever else the relay holds.
	{code: results.CodeFilterKinds, ask: filters(func(c *collection) []question {
		mine := c.mine()
		return []question{{&mine, corpus.Filter{Kinds: []int{7}}}, {&mine, corpus.Filter{Kinds: []int{1, 7}}},
			{&mine, corpus.Filter{Kinds: []int{6}}}}
	})},
	{code: results.CodeFilterTagE, ask: filters(func(c *collection) []question {
		mine := c.mine()
		return []question{{nil, tagged('e', c.root)}, {nil, tagged('e', c.absent, c.root)},
			{&mine, tagged('e', c.root)}, {&mine, tagged('e', c.absent)}}
	})},
	{code: results.CodeFilterTagP, ask: filters(func(c *collection) []question {
		person, mine, byRoot := c.other.String(), c.mine(7), tagged('e', c.root)
		return []question{{nil, tagged('p', person)}, {nil, tagged('p', newKey().PubKey.String(), person)},
			{&mine, tagged('p', person)}, {&byRoot, tagged('p', person)}}
	})},
	// Asks for a value of which another is the beginning: stores have been seen to match prefixes.
	{code: results.CodeFilterTagT, ask: filters(func(c *collection) []question {
		mine := c.mine()
		return []question{{nil, tagged('t', c.topic)}, {nil, tagged('t', c.topic, c.topic+"b")},
			{&mine, tagged('t', c.topic)}, {&mine, tagged('t', "none")}}
	})},
	// Asks for ids together with an author: relays have been seen to look at the ids alone. No
	// question of a scenario does, so that it bears on none.
	{code: results.CodeFilterMore, stated: true, ask: filters(func(c *collection) []question {
		byIDs, mine := corpus.Filter{IDs: ids(c.one, c.four)}, c.mine()
		for _, f := range []corpus.Filter{byIDs, mine} {
			if good := exactly(ids(c.matching(f)...)); !good(c.poll(good, limited(f, 50))) {
				must(errNoQuestion) // what each does alone is another check's matter
			}
		}
		return []question{{&byIDs, mine}, {&mine, byIDs}}
	})},
	// A limit returns as many, and the newest.
	{code: results.CodeLimit, ask: func(c *checker) {
		s, newest := c.series(5)
		for _, n := range []int{50, 1, 3} {
			s.expect(ids(newest[:min(n, 5)]...), limited(c.mine(1), n))
		}
	}},
	{code: results.CodeOrder, ask: newestFirst},
	{code: results.CodeInclusive, ask: inclusive},
	// The answer to several filters is the union, and each limit is its filter's own. An event
	// that matches both may come twice.
	{code: results.CodeSeveral, stated: true, ask: func(c *checker) {
		s, newest := c.series(5)
		want := ids(newest[0], newest[1], newest[4])
		r := s.expect(want, limited(c.mine(1), 2), corpus.Filter{IDs: ids(newest[4], newest[0])})
		c.seen.Counts = counts{"twice": number(len(r.ids) > len(want))}
	}},
	{code: results.CodeStale, stated: true, ask: answersAnew},
	// Of kinds 0, 3 and 10002 only the newer event is left (NIP-01).
	{code: results.CodeReplaceable, ask: func(c *checker) {
		s := c.dial()
		for _, kind := range []int{0, 3, 10002} {
			older, newer := c.version(kind, 0, 1), c.version(kind, 5, 2)
			s.replaced(kind, []*corpus.Event{older, newer}, newer)
		}
	}},
	// Of one d tag only the newer event is left, and others stay (NIP-01).
	{code: results.CodeAddressable, ask: func(c *checker) {
		older, other, newer := c.article(0, "one", "Before"), c.article(2, "two", "Another"), c.article(5, "one", "After")
		c.dial().replaced(30023, []*corpus.Event{older, other, newer}, newer, other)
	}},
	// An older version that arrives after the newer one is not served. Whether its OK is true or
	// false is the relay's choice.
	{code: results.CodeLateVersion, stated: true, ask: func(c *checker) {
		s, older, newer := c.dial(), c.version(10002, 0, 1), c.version(10002, 5, 2)
		s.store(newer)
		got, err := s.publish(older)
		must(err)
		marker := c.event(1, c.recent(6), "after the older version")
		s.store(marker)
		c.seen.Counts, c.seen.Texts = counts{"accepted": number(got.accepted)}, texts{"reason": got.reason}
		good := func(r *reply) bool { return holds(newer, marker)(r) && !holds(older)(r) }
		_, err = s.wants(good, ids(newer, marker), c.mine())
		if short := failure(err); short != nil {
			short.Counts["accepted"], short.Texts = c.seen.Counts["accepted"], c.seen.Texts
		}
		must(err)
	}},
	{code: results.CodeEphemeral, stated: true, ask: ephemeral},
	{code: results.CodeDeletion, stated: true, ask: deletesOwnAlone},
	// An event that another connection publishes after EOSE reaches the subscription.
	{code: results.CodeLive, ask: func(c *checker) {
		listener, publisher, sub := c.listening(c.mine(1))
		for i := range 2 {
			e := c.event(1, c.now, fmt.Sprintf("live %d", i))
			publisher.store(e)
			listener.arrives(sub, e, nil)
		}
	}},
	// An open subscription gets what matches its filter, tags included, and nothing else.
	{code: results.CodeLiveFilter, ask: func(c *checker) {
		value := func(value string) corpus.Tag { return corpus.Tag{"t", value + c.key.PubKey.String()[:8]} }
		listener, publisher, sub := c.listening(both(c.mine(1), tagged('t', value("a").Value())))
		other, match := c.event(1, c.now, "not asked for", value("b")), c.event(1, c.now, "asked for", value("a"))
		publisher.store(other, match)
		listener.arrives(sub, match, other)
	}},
	{code: results.CodeClose, stated: true, ask: endsOnClose},
	{code: results.CodeNIP77, ask: reconciles},
	{code: results.CodeAdvertised, stated: true, alone: true, ask: speaksWhatItNames},
	{code: results.CodeNagle, stated: true, alone: true, ask: holdsBack},
	{code: results.CodeFsyncEach, stated: true, alone: true, ask: syncsEach},
	{code: results.CodeOnlyMessage, stated: true, alone: true, ask: onlyMessages},
	{code: results.CodeThrottles, alone: true, ask: doesNotThrottle},
}

// probes lists what is found out by asking, beyond what the flood of the last check tells.
var probes = []probe{
	{"subscription cap", 0, probeSubscriptions},
	{"message size", 0, probeMessageSize},
	{"NIP-45", 45, probeCount},
	// Publishes an event that has expired (NIP-40): it may be refused, or stored and never
	// returned.
	{"NIP-40", 40, func(c *checker) (spoken bool, text string) {
		s, e := c.dial(), c.event(1, c.recent(0), "past its time", corpus.Tag{"expiration", strconv.FormatInt(c.recent(60), 10)})
		if got, silent := s.offer(e); !silent && !got.accepted {
			return true, fmt.Sprintf("yes: an expired event gets %v", got)
		}
		marker := c.event(1, c.recent(1), "still good")
		s.store(marker)
		if r := s.poll(exactly(ids(marker)), c.mine(1)); holds(e)(r) {
			return false, "no: an expired event is returned"
		}
		return true, "yes: an expired event is not returned"
	}},
	// Asks every relay to forget the author (NIP-62).
	{"NIP-62", 62, func(c *checker) (spoken bool, text string) {
		s, gone := c.dial(), c.event(1, c.recent(0), "to vanish")
		s.store(gone)
		s.need(exactly(ids(gone)), c.mine(1))
		got, silent := s.offer(c.event(corpus.KindVanish, c.recent(1), "", corpus.Tag{"relay", "ALL_RELAYS"}))
		if !silent && !got.accepted {
			return false, fmt.Sprintf("no: the request of kind %d gets %v", corpus.KindVanish, got)
		}
		if r := s.poll(exactly(nil), corpus.Filter{IDs: ids(gone)}); holds(gone)(r) {
			return false, "no: the event is still returned"
		}
		return true, "yes"
	}},
	// Publishes an event that its author alone may publish, without proving to be that author
	// (NIP-70).
	{"NIP-70", 70, func(c *checker) (spoken bool, text string) {
		got, err := c.dial().publish(c.event(1, c.recent(0), "protected", corpus.Tag{"-"}))
		must(err)
		if got.accepted {
			return false, "no: a protected event is taken from anybody"
		}
		return true, fmt.Sprintf("yes: a protected event gets %v", got)
	}},
	// Looks for one of two events by a word of its content (NIP-50). A relay that does not know the
	// field returns both, or nothing.
	{"NIP-50", 50, func(c *checker) (spoken bool, text string) {
		const word = "thrushes"
		s := c.dial()
		sought := c.event(1, c.recent(0), "where the "+word+" sing at dusk")
		other := c.event(1, c.recent(1), "where nothing of the kind is to be heard")
		s.store(sought, other)
		s.poll(exactly(ids(other, sought)), c.mine(1))
		s.member = `"search":"` + word + `"`
		var r *reply
		err := try(func() { r = s.poll(exactly(ids(sought)), c.mine(1)) })
		s.member = ""
		switch {
		case errors.Is(err, client.ErrSilent):
			s.meant()
			return false, "no: a search is not answered"
		case err != nil:
			must(err)
		case exactly(ids(sought))(r):
			return true, "yes"
		case r.closed:
			return false, "no: CLOSED " + quoted(r.reason)
		case exactly(ids(other, sought))(r):
			return false, "no: a search is answered as if it were none"
		case len(r.ids)+r.noID == 0:
			return false, "no: a search finds nothing"
		}
		return false, "wrong: a search for a word of one event returns others"
	}},
	// Asks for the information document (NIP-11). What it says is probed instead, and compared with
	// that.
	{"NIP-11", 11, func(c *checker) (spoken bool, text string) {
		said, err := client.Inform(c.ctx, c.o.URL, c.o.Wait)
		if err != nil {
			must(context.Cause(c.ctx))
			return false, "no: " + err.Error()
		}
		c.locked(func() { c.said = said })
		return true, "yes"
	}},
	// Of events of one second the lowest id should come first (NIP-01). Many relays leave it open,
	// and which of them is in an answer is no fault in the model's eyes either.
	{"order of ties", 0, func(c *checker) (spoken bool, text string) {
		s := c.dial()
		var tied []*corpus.Event
		for i := range 6 {
			tied = append(tied, c.event(1, c.recent(0), fmt.Sprintf("at once %d", i)))
		}
		s.store(tied...)
		want := ids(tied...)
		slices.SortFunc(want, func(x, y corpus.ID) int { return bytes.Compare(x[:], y[:]) })
		r := s.poll(exactly(want), limited(c.mine(1), 50))
		switch {
		case !exactly(want)(r):
			return false, fmt.Sprintf("unknown: %d events came instead of the 6 of one second", len(r.ids))
		case !inOrder(want)(r):
			return false, "not by id"
		}
		return true, "lowest id first"
	}},
	// Offers permessage-deflate (RFC 7692).
	{"compression", 0, func(c *checker) (spoken bool, text string) {
		conn, err := wire.Dial(c.ctx, c.o.URL, wire.Options{Compression: true})
		must(err)
		defer conn.Abort()
		if negotiated := conn.Negotiated(); negotiated != "" {
			return false, clip(negotiated, maxText)
		}
		return false, "none"
	}},
}

// counts and texts are the facts of a finding.
type (
	counts = map[string]float64
	texts  = map[string]string
)

// outcome is how a check ended before its end. It is the error that ends it.
type outcome struct {
	// Finding is what was seen. Its verdict is Failed where the relay does otherwise than it
	// should, Stated where that bars nothing even if the check does, and Undecided where it could
	// not be found out. BearsOn is instead of what the check's code bears on.
	results.Finding
	text string // for people, where it is undecided
	err  error  // why an answer did not come
}

func (o *outcome) Error() string { return o.text }
func (o *outcome) Unwrap() error { return o.err }

func found(verdict results.Verdict, text, cause string, c counts, t texts, evidence ...results.Evidence) *outcome {
	return &outcome{Finding: results.Finding{Verdict: verdict, Cause: cause, Counts: c, Texts: t, Evidence: evidence}, text: text}
}

func fail(cause string, c counts, t texts, evidence ...results.Evidence) error {
	return found(results.Failed, "seen: "+cause, cause, c, t, evidence...)
}

func state(cause string, c counts, t texts) error {
	return found(results.Stated, "seen: "+cause, cause, c, t)
}

func leaveOpen(cause string, c counts) error {
	text := map[string]string{results.CauseSlow: "its answers are too slow for silence to mean anything",
		results.CauseNeeds: "what the question rests on does not hold",
		results.CausePlain: "an event of plain text does not come back as it was sent either",
		results.CauseFew:   "too few answers came"}[cause]
	return found(results.Undecided, text, cause, c, nil)
}

func closedBy(r *reply) error {
	return found(results.Undecided, "the REQ was refused: CLOSED "+quoted(r.reason), results.CauseClosed, nil, texts{"reason": r.reason})
}

// needed is a valid event that was refused where a check needed it.
func needed(e *corpus.Event, refused answer) error {
	return found(results.Undecided, fmt.Sprintf("a valid event of kind %d was refused: %v", e.Kind, refused), results.CauseSetup,
		counts{"kind": float64(e.Kind)}, texts{"reason": refused.reason})
}

// refusal is a valid event that was refused where that was the question. A limit of rates is
// another matter.
func refusal(e *corpus.Event, refused answer) error {
	if speaksOfRate(refused.reason) {
		return needed(e, refused)
	}
	return fail(results.CauseRefused, counts{"kind": float64(e.Kind), "createdAt": float64(e.CreatedAt)}, texts{"reason": refused.reason})
}

// noAnswer is an answer that did not come: since none came by a deadline (client.ErrSilent), or
// since the connection ended. doing is for people.
func noAnswer(doing string, err error) *outcome {
	o := found(results.Undecided, doing+": "+err.Error(), results.CauseLost, nil, texts{})
	o.err = err
	switch {
	case errors.Is(err, errOutOfTime):
		o.Cause = results.CauseTime
	case errors.Is(err, client.ErrSilent), errors.Is(err, context.DeadlineExceeded): // the latter of a handshake
		o.Cause = results.CauseSilent
	default:
		o.Texts["error"], o.Texts["doing"] = err.Error(), doing
	}
	return o
}

// errNoQuestion says that a check is none for this run: nothing is to be found out, now or later.
var errNoQuestion = errors.New("there is nothing to ask")

// failure returns what an error says against the relay, nil where it says nothing.
func failure(err error) *outcome {
	if o := (*outcome)(nil); errors.As(err, &o) && o.Verdict != results.Undecided {
		return o
	}
	return nil
}

// undecided is what an error says of why a check is open. No error is held against the relay: only
// what it did is.
func undecided(err error) results.Finding {
	o := (*outcome)(nil)
	if !errors.As(err, &o) {
		o = noAnswer("", err)
	}
	return o.Finding
}

// finding weighs what a check saw.
func (c *check) finding(f results.Finding, err error, relay string) results.Finding {
	f.Verdict = results.Passed
	if short := failure(err); short != nil {
		if f = short.Finding; c.stated {
			f.Verdict = results.Stated
		}
	} else if err != nil {
		f = undecided(err)
	}
	f.Relay, f.Scenario, f.Code = relay, Scenario, c.code
	f.Counts, f.Texts = maps.Clone(f.Counts), bounded(f.Texts)
	f.Evidence = slices.Clone(f.Evidence[:min(len(f.Evidence), maxEvidence)])
	for i := range f.Evidence {
		f.Evidence[i].Text = clip(f.Evidence[i].Text, maxLine)
	}
	switch {
	case f.Verdict != results.Failed:
		f.BearsOn = nil
	case f.BearsOn == nil:
		f.BearsOn = results.BearsOn(c.code, Scenario, nil)
		fallthrough
	default:
		f.Blames = relay
	}
	return f
}

// bounded returns the texts that are not empty, cut.
func bounded(t texts) (out texts) {
	for name, text := range t {
		if text != "" {
			if out == nil {
				out = texts{}
			}
			out[name] = clip(text, maxLine)
		}
	}
	return out
}

// about names an event as evidence.
func about(code string, e *corpus.Event) results.Evidence {
	return results.Evidence{Code: code, ID: e.ID.String(), Kind: new(e.Kind)}
}
