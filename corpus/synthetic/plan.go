package synthetic

import "slices"

// eventForm is what an event of the synthetic corpus is for. It decides the kind.
type eventForm uint8

const (
	formNote eventForm = iota
	formReply
	formRepost
	formReaction
	formZap
	formArticle
	formDirect
	formProfile
	formContacts
	formRelays
)

// kind returns the event kind: NIP-01, 02, 04, 18, 23, 25, 57 and 65.
func (f eventForm) kind() int {
	return [...]int{1, 1, 6, 7, 9735, 30023, 4, 0, 3, 10002}[f]
}

// socialForms is how often the forms come that are not an author's standing lists.
var socialForms = []weighted[eventForm]{
	{36, formNote}, {19, formReply}, {8, formRepost}, {27, formReaction}, {6, formZap}, {2, formArticle}, {2, formDirect},
}

// standingForms are the lists of every author, with the chance in percent of one more version.
var standingForms = []weighted[eventForm]{
	{20, formProfile}, {30, formContacts}, {10, formRelays},
}

const (
	windowDays    = 30
	windowSeconds = windowDays * 24 * 3600
	noEvent       = -1
	maxVersion    = 3 // a standing list is renewed three times at most
)

// hourWeights is the share of a day's events that fall into each of its hours, in percent: quiet in
// the fourth hour, busy in the evening.
var hourWeights = []weighted[int]{
	{3, 0}, {2, 1}, {2, 2}, {2, 3}, {2, 4}, {2, 5}, {3, 6}, {4, 7}, {4, 8}, {4, 9}, {5, 10}, {5, 11},
	{5, 12}, {5, 13}, {5, 14}, {5, 15}, {5, 16}, {5, 17}, {6, 18}, {6, 19}, {6, 20}, {6, 21}, {5, 22}, {3, 23},
}

// plannedEvent is all that must be decided about an event before any event is built: 16 bytes, so
// that a plan of millions fits in memory. Text and the rest follow from the corpus seed and the
// event's index in the plan.
type plannedEvent struct {
	at      uint32 // seconds since the window's start
	target  int32  // index of the event referred to: replied to, reposted, reacted to, zapped, edited; or noEvent
	root    int32  // for replies, index of the note that the thread began with
	author  uint16
	form    eventForm
	version uint8 // of a standing list, from 0
}

// authorCount is how many authors a corpus of so many events has.
func authorCount(events int) int { return min(max(events/20, 20), 2000) }

// planner decides the events one by one in the order of time.
type planner struct {
	r          *randStream
	popularity zipfTable
	events     []plannedEvent
	standing   []authorForm // lists still to be published

	// What may be referred to lies in an earlier second than the event that refers, since within a
	// second ids decide the order and ids are not known yet. Only so many of notes and articles do.
	notes, articles               []int32
	earlierNotes, earlierArticles int
	references                    []int32 // what earlier references referred to
	taken                         []authorForm
	versions                      map[authorForm]uint8 // looked up, never walked through
}

type authorForm struct {
	author uint16
	form   eventForm
}

// planCorpus decides time, form, author and target of every event. The result is ordered by time.
func planCorpus(events int, popularity zipfTable, seed [32]byte) []plannedEvent {
	r := newRandStream(seed)
	p := planner{
		r:          r,
		popularity: popularity,
		events:     make([]plannedEvent, 0, events),
		versions:   map[authorForm]uint8{},
	}
	times := drawTimes(r, events)
	// Where events are few, half of them are left for what the lists' authors have to say.
	p.standing = drawStanding(r, len(popularity), events/2)
	for i, at := range times {
		if i > 0 && at != times[i-1] {
			p.earlierNotes, p.earlierArticles = len(p.notes), len(p.articles)
			p.taken = p.taken[:0]
		}
		e := plannedEvent{at: at, target: noEvent, root: noEvent}
		// The lists fall on a random choice of the events: each is one with the probability lists
		// left / events left.
		if r.below(events-i) >= len(p.standing) || !p.takeStanding(&e) {
			p.drawSocial(&e)
		}
		p.add(e)
	}
	return p.events
}

// drawTimes returns n seconds in ascending order. Two in a hundred are those of other events, so
// that the smallest corpus has ties to put in order.
func drawTimes(r *randStream, n int) []uint32 {
	times := make([]uint32, n)
	for i := range times {
		if i > 0 && r.chance(2) {
			times[i] = times[r.below(i)]
			continue
		}
		hour := r.below(windowDays)*24 + pickWeighted(r, hourWeights)
		times[i] = uint32(hour*3600 + r.below(3600))
	}
	slices.Sort(times)
	return times
}

// drawStanding returns up to limit lists to publish: all first versions, then renewals.
func drawStanding(r *randStream, authors, limit int) []authorForm {
	var lists []authorForm
	for author := range authors {
		for _, row := range standingForms {
			lists = append(lists, authorForm{uint16(author), row.value})
		}
	}
	for author := range authors {
		for _, row := range standingForms {
			for version := 0; version < maxVersion && r.chance(row.weight); version++ {
				lists = append(lists, authorForm{uint16(author), row.value})
			}
		}
	}
	lists = lists[:min(len(lists), limit)]
	for i := len(lists) - 1; i > 0; i-- {
		j := r.below(i + 1)
		lists[i], lists[j] = lists[j], lists[i]
	}
	return lists
}

// takeStanding makes e the next list. It returns false where the author published the same list in
// this very second: two versions of one second would supersede each other by id, and the renewal is
// let go.
func (p *planner) takeStanding(e *plannedEvent) bool {
	list := p.standing[0]
	p.standing = p.standing[1:]
	if !p.free(list) {
		return false
	}
	e.author, e.form, e.version = list.author, list.form, p.versions[list]
	p.versions[list]++
	return true
}

func (p *planner) drawSocial(e *plannedEvent) {
	avoid := noEvent // an author who would repost, like or zap an event of their own
	switch e.form = pickWeighted(p.r, socialForms); e.form {
	case formReply, formRepost, formReaction, formZap:
		target, ok := p.drawTarget()
		if !ok {
			e.form = formNote
			break
		}
		e.target = target
		if e.form != formReply {
			avoid = int(p.events[target].author)
		} else if e.root = p.events[target].root; e.root == noEvent {
			e.root = target
		}
	case formArticle:
		if p.earlierArticles > 0 && p.r.chance(20) {
			original := p.articles[p.r.below(p.earlierArticles)]
			author := p.events[original].author
			if p.free(authorForm{author, formArticle}) {
				e.target, e.author = original, author
				return
			}
		}
	}
	e.author = p.drawAuthor(e.form, avoid)
}

// drawTarget chooses a note: in 70 of 100 cases one of the newest quarter, and the newer the
// likelier; else any, with a lead for the oldest, the evergreens. More often than not it is what
// some earlier reference referred to, so that talk gathers around what is talked about. Windows
// double, and each is as likely as the next: nearness counts, at no one scale.
func (p *planner) drawTarget() (index int32, ok bool) {
	notes, references := p.notes[:p.earlierNotes], p.references
	if len(notes) == 0 {
		return 0, false
	}
	oldest := notes[0]
	if p.r.chance(70) {
		window := 8 << p.r.below(11)
		quarter := max(8, len(notes)/4)
		oldest = notes[max(0, len(notes)-quarter)]
		notes = notes[max(0, len(notes)-min(window, quarter)):]
		references = references[max(0, len(references)-window):]
	} else {
		notes = notes[:min(2<<p.r.below(20), len(notes))]
	}
	if p.r.chance(65) && len(references) > 0 {
		if again := pickOne(p.r, references); again >= oldest {
			return again, true
		}
	}
	return pickOne(p.r, notes), true
}

// drawAuthor chooses by popularity among the authors without an event of the same form in this
// second. Two such events might be the same to the byte, and the corpus would hold one event less.
func (p *planner) drawAuthor(form eventForm, avoid int) uint16 {
	for range 32 {
		author := p.popularity.draw(p.r)
		if author != avoid && p.free(authorForm{uint16(author), form}) {
			return uint16(author)
		}
	}
	first, authors := p.r.below(len(p.popularity)), len(p.popularity)
	for i := range authors {
		author := (first + i) % authors
		if author != avoid && p.free(authorForm{uint16(author), form}) {
			return uint16(author)
		}
	}
	return uint16(first)
}

func (p *planner) free(af authorForm) bool { return !slices.Contains(p.taken, af) }

func (p *planner) add(e plannedEvent) {
	index := int32(len(p.events))
	p.events = append(p.events, e)
	p.taken = append(p.taken, authorForm{e.author, e.form})
	switch e.form {
	case formNote:
		p.notes = append(p.notes, index)
	case formReply:
		p.notes = append(p.notes, index)
		p.references = append(p.references, e.target)
	case formRepost, formReaction, formZap:
		p.references = append(p.references, e.target)
	case formArticle:
		if e.target == noEvent {
			p.articles = append(p.articles, index)
		}
	}
}
