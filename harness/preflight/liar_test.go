package preflight

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"relaybench/corpus"
	"relaybench/corpus/scan"
)

// liar is a small relay that keeps to NIP-01 but for what its lies say.
type liar struct {
	lies map[string]bool
	slow time.Duration // before each message is dealt with

	mu      sync.Mutex
	events  []corpus.Event
	texts   map[corpus.ID]string // how an event is returned, where that is not as it came
	taken   int
	clients map[*peer]bool
	cache   map[string]*cached // answers by filter
}

type cached struct {
	served int
	found  []corpus.Event
}

type peer struct {
	conn  *websocket.Conn
	asked int
	send  sync.Mutex
	mu    sync.Mutex
	subs  map[string][]corpus.Filter
}

func (c *peer) say(format string, args ...any) {
	c.send.Lock()
	defer c.send.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c.conn.Write(ctx, websocket.MessageText, fmt.Appendf(nil, format, args...))
}

// serveLiar starts a relay with these lies and returns its URL.
func serveLiar(t *testing.T, lies ...string) string { return serveSlowLiar(t, 0, lies...) }

// serveSlowLiar starts one that lets each message wait.
func serveSlowLiar(t *testing.T, slow time.Duration, lies ...string) string {
	t.Helper()
	l := &liar{lies: make(map[string]bool), texts: make(map[corpus.ID]string), clients: make(map[*peer]bool), slow: slow, cache: make(map[string]*cached)}
	for _, lie := range lies {
		l.lies[lie] = true
	}
	server := httptest.NewServer(http.HandlerFunc(l.serve))
	t.Cleanup(server.Close)
	return "ws" + strings.TrimPrefix(server.URL, "http")
}

func (l *liar) serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Accept") == "application/nostr+json" && r.Header.Get("Upgrade") == "" {
		switch {
		case l.lies["describes itself"]:
			fmt.Fprint(w, `{"name":"liar","supported_nips":[1,11,45,50,77,999]}`)
		case l.lies["describes itself without end"]:
			for {
				if _, err := fmt.Fprintf(w, `{"name":%q,`, strings.Repeat("x", 1000)); err != nil {
					return
				}
			}
		case l.lies["describes itself in prose"]:
			fmt.Fprint(w, `["a relay"]`)
		case l.lies["sends to another address"]:
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		default:
			http.Error(w, "no", http.StatusNotAcceptable)
		}
		return
	}
	options := &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled}
	if l.lies["compresses"] {
		options.CompressionMode = websocket.CompressionContextTakeover
	}
	conn, err := websocket.Accept(w, r, options)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(1 << 20)
	c := &peer{conn: conn, subs: make(map[string][]corpus.Filter)}
	l.mu.Lock()
	l.clients[c] = true
	l.mu.Unlock()
	defer func() { l.mu.Lock(); delete(l.clients, c); l.mu.Unlock() }()
	if l.lies["greets"] {
		c.say(`["NOTICE","invalid: welcome"]`)
	}
	if l.lies["challenges"] {
		c.say(`["AUTH","prove it"]`)
	}
	for {
		_, frame, err := conn.Read(context.Background())
		if err != nil {
			return
		}
		time.Sleep(l.slow) // the script's own delay
		parts, err := scan.Elements(frame)
		if err != nil || len(parts) < 2 || l.lies["mute"] {
			continue
		}
		switch string(parts[0]) {
		case `"EVENT"`:
			if !l.publish(c, parts[1]) {
				return
			}
		case `"REQ"`:
			if l.lies["babbles"] {
				for {
					if conn.Write(context.Background(), websocket.MessageText, []byte(`["NOTICE","`+strings.Repeat("\\u001b[31m", 3000)+`"]`)) != nil {
						return
					}
				}
			}
			if c.asked++; l.lies["hangs up when asked much"] && c.asked > 40 {
				c.conn.CloseNow()
				return
			}
			if l.lies["limits REQs"] {
				if c.asked > 40 { // no check but the flood asks as much on one connection

					c.say(`["CLOSED",%s,"rate-limited: ask less"]`, parts[1])
					continue
				}
			}
			l.request(c, strings.Trim(string(parts[1]), `"`), parts[2:])
		case `"CLOSE"`:
			if !l.lies["ignores CLOSE"] {
				c.mu.Lock()
				delete(c.subs, strings.Trim(string(parts[1]), `"`))
				c.mu.Unlock()
			}
		case `"NEG-OPEN"`:
			l.reconcile(c, parts[1])
		default:
			c.say(`["CLOSED",%s,"error: unknown message"]`, parts[1])
		}
	}
}

// reconcile answers NEG-OPEN.
func (l *liar) reconcile(c *peer, sub []byte) {
	switch {
	case l.lies["reconciles nothing"]:
		c.say(`["NEG-MSG",%s,"61"]`, sub)
	case l.lies["reconciles in prose"]:
		c.say(`["NEG-MSG",%s,"no hex at all"]`, sub)
	case l.lies["reconciles with random bytes"]:
		c.say(`["NEG-MSG",%s,"61ffffffffffffffffff"]`, sub)
	case l.lies["refuses to reconcile"]:
		c.say(`["NEG-ERR",%s,"blocked: not today"]`, sub)
	case l.lies["ignores NEG-OPEN"]:
	default:
		c.say(`["CLOSED",%s,"error: unknown message"]`, sub)
	}
}

// publish returns false where the connection is to be closed.
func (l *liar) publish(c *peer, text []byte) bool {
	e, err := corpus.ParseEvent(text)
	if err != nil {
		id, ok := corpus.ParseID(text[7:71])
		switch {
		case l.lies["closes on malformed events"]:
			return false
		case !ok || l.lies["notices malformed events"]:
			c.say(`["NOTICE","invalid: that is no event"]`)
		default:
			c.say(`["OK","%s",%t,"that is no event"]`, id, l.lies["takes malformed events"])
		}
		return true
	}
	ok := func(accepted bool, reason string) bool {
		if !l.lies["sends no OK"] {
			c.say(`["OK","%s",%t,"%s"]`, e.ID, accepted, reason)
		}
		return true
	}
	l.mu.Lock()
	l.taken++
	n := l.taken
	l.mu.Unlock()
	err = e.Verify()
	at, expires := e.Expiration()
	switch {
	case err == corpus.ErrBadID && !l.lies["takes bad ids"], err == corpus.ErrBadSignature && !l.lies["takes bad signatures"]:
		if l.lies["mute on forgeries"] {
			return true
		}
		if l.lies["stores what it refuses"] {
			l.keep(e)
		}
		return ok(false, "invalid: forged")
	case l.lies["hashes DEL as strfry does"] && strings.Contains(e.Content, "\x7f"):
		return ok(false, "invalid: bad event id")
	case l.lies["refuses NUL"] && strings.Contains(e.Content, "\x00"):
		return ok(false, "invalid: a null character")
	case l.lies["refuses empty tags"] && slices.ContainsFunc(e.Tags, func(t corpus.Tag) bool { return len(t) == 0 }):
		return ok(false, "invalid: too few fields in tag")
	case l.lies["refuses notes"] && e.Content == "A plain note.":
		return ok(false, "blocked: not that note")
	case l.lies["names no event"]:
		c.say(`["OK","",true,""]`)
		l.keep(e)
		return true
	case l.lies["refuses everything"]:
		return ok(false, "blocked: \u202enobody writes here")
	case l.lies["limits rates"] && n > 100:
		return ok(false, "rate-limited: slow down")
	case l.lies["notices rates"] && n > 130:
		c.say(`["NOTICE","you are sending too fast"]`)
		return true
	case l.lies["hangs up"] && n > 130:
		c.conn.Close(websocket.StatusPolicyViolation, "enough")
		return false
	case l.lies["stops answering"] && n > 130:
		return true
	case l.lies["refuses old events"] && e.CreatedAt < time.Now().Unix()-180*86400 && e.CreatedAt < 1_780_000_000,
		l.lies["refuses events of 2020"] && e.CreatedAt < 1_600_000_000:
		return ok(false, "invalid: too old")
	case expires && at < time.Now().Unix():
		return ok(false, "invalid: expired")
	case len(text) > 20_000 && l.lies["takes small events alone"]:
		c.say(`["NOTICE","message too large"]`)
		return true
	}
	l.mu.Lock()
	known := slices.ContainsFunc(l.events, func(o corpus.Event) bool { return o.ID == e.ID })
	l.mu.Unlock()
	if known {
		return l.lies["ignores duplicates"] || ok(true, "duplicate: have it")
	}
	if l.lies["acknowledges first"] {
		ok(true, "")
	}
	if e.Kind == corpus.KindDeletion {
		l.delete(e)
	}
	switch {
	case corpus.IsEphemeral(e.Kind) && !l.lies["stores ephemeral events"]:
	case l.lies["stores nothing"]:
	default:
		l.keep(e)
	}
	if !corpus.IsEphemeral(e.Kind) || !l.lies["passes nothing on"] {
		l.push(e)
	}
	if corpus.IsEphemeral(e.Kind) && l.lies["takes ephemeral events in silence"] {
		return true
	}
	return l.lies["acknowledges first"] || ok(true, "")
}

// delete deals with a deletion request.
func (l *liar) delete(request corpus.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = slices.DeleteFunc(l.events, func(e corpus.Event) bool {
		mine := e.PubKey == request.PubKey && l.lies["deletes"]
		return (mine || l.lies["deletes anybody's"]) && slices.ContainsFunc(request.Tags, func(t corpus.Tag) bool { return t.Name() == "e" && t.Value() == e.ID.String() })
	})
}

// keep stores an event, and removes or keeps out what is superseded.
func (l *liar) keep(e corpus.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	replaceable := corpus.IsReplaceable(e.Kind) && !l.lies["keeps replaced events"] || corpus.IsAddressable(e.Kind) && !l.lies["keeps addressed events"]
	same := func(o *corpus.Event) bool {
		return o.Kind == e.Kind && o.PubKey == e.PubKey && (!corpus.IsAddressable(e.Kind) || o.D() == e.D())
	}
	if replaceable {
		for i := range l.events {
			if same(&l.events[i]) && l.events[i].CreatedAt > e.CreatedAt && !l.lies["stores late versions"] {
				return
			}
		}
		l.events = slices.DeleteFunc(l.events, func(o corpus.Event) bool { return same(&o) && o.CreatedAt <= e.CreatedAt })
	}
	l.events = append(l.events, e)
}

// form returns the event as it is sent to readers.
func (l *liar) form(e *corpus.Event) string {
	g := *e
	if l.lies["strips white space"] {
		g.Content = strings.TrimSpace(g.Content)
	}
	if l.lies["drops empty tags"] {
		g.Tags = slices.DeleteFunc(slices.Clone(g.Tags), func(t corpus.Tag) bool { return len(t) == 0 })
	}
	if l.lies["replaces control characters"] {
		g.Content = strings.NewReplacer("\x01", "?", "\x02", "?", "\x03", "?").Replace(g.Content)
	}
	text := string(g.AppendJSON(nil))
	switch {
	case l.lies["alters fields"]:
		return strings.Replace(text, `"sig":"`, `"sig":"00`, 1)[:len(text)] + `"}`
	case l.lies["escapes as HTML does"]:
		return strings.NewReplacer("<b>", "&lt;b>").Replace(text)
	case l.lies["returns tags as text"]:
		before, rest, _ := strings.Cut(text, `"tags":`)
		tags, after, _ := strings.Cut(rest, `,"content":`)
		return before + `"tags":` + string(corpus.AppendString(nil, tags)) + `,"content":` + after
	}
	return text
}

func (l *liar) matches(f *corpus.Filter, e *corpus.Event, live bool) bool {
	g := *f
	if l.lies["ignores tags"] || live && l.lies["ignores tags of live events"] {
		g.Tags = nil
	}
	if l.lies["ignores ids"] && g.Limit != nil && *g.Limit == 50 {
		g.IDs = nil
	}
	if l.lies["ignores authors"] && len(g.Kinds) == 0 && g.Limit != nil && *g.Limit == 50 {
		g.Authors = nil
	}
	if l.lies["ignores kinds"] && slices.Contains(g.Kinds, 7) {
		g.Kinds = nil
	}
	for i, t := range g.Tags {
		switch {
		case live:
		case l.lies["ignores #e"] && t.Name == 'e', l.lies["ignores #p"] && t.Name == 'p':
			g.Tags = slices.Delete(slices.Clone(g.Tags), i, i+1)
			return g.Matches(e)
		case l.lies["matches prefixes"]: // as stores do that look tag values up in the order of their index
			g.Tags = slices.Delete(slices.Clone(g.Tags), i, i+1)
			begins := func(tag corpus.Tag) bool {
				return tag.Name() == string(t.Name) && slices.ContainsFunc(t.Values, func(v string) bool { return strings.HasPrefix(tag.Value(), v) })
			}
			return g.Matches(e) && slices.ContainsFunc(e.Tags, begins)
		}
	}
	if l.lies["excludes since"] && g.Since != nil && e.CreatedAt == *g.Since {
		return false
	}
	if l.lies["excludes until"] && g.Until != nil && e.CreatedAt == *g.Until {
		return false
	}
	return g.Matches(e)
}

func (l *liar) push(e corpus.Event) {
	if l.lies["sends nothing live"] {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.clients {
		c.mu.Lock()
		var subs []string
		for sub, filters := range c.subs {
			if slices.ContainsFunc(filters, func(f corpus.Filter) bool { return l.matches(&f, &e, true) }) {
				subs = append(subs, sub)
			}
		}
		c.mu.Unlock()
		for _, sub := range subs {
			c.say(`["EVENT","%s",%s]`, sub, l.form(&e))
		}
	}
}

// searchMember is the member of a filter that asks for a word (NIP-50).
var searchMember = regexp.MustCompile(`,"search":"([^"]*)"`)

func (l *liar) request(c *peer, sub string, texts [][]byte) {
	var filters []corpus.Filter
	search := ""
	for _, text := range texts {
		if m := searchMember.FindSubmatch(text); m != nil && !l.lies["does not know searches"] {
			text = searchMember.ReplaceAll(text, nil)
			switch search = string(m[1]); {
			case l.lies["ignores searches"]:
				search = ""
			case l.lies["finds nothing"]:
				search = "what no event contains"
			}
		}
		f, err := corpus.ParseFilter(text)
		if err != nil {
			c.say(`["CLOSED","%s","error: filter"]`, sub)
			return
		}
		filters = append(filters, f)
	}
	c.mu.Lock()
	full := l.lies["takes ten subscriptions"] && len(c.subs) == 10
	if !full {
		c.subs[sub] = filters
	}
	c.mu.Unlock()
	if full {
		c.say(`["CLOSED","%s","error: no more than ten"]`, sub)
		return
	}
	var found []corpus.Event
	l.mu.Lock()
	if l.lies["takes one filter"] {
		filters = filters[:1]
	}
	for _, f := range filters {
		for _, e := range l.query(&f) {
			if strings.Contains(e.Content, search) && !slices.ContainsFunc(found, func(o corpus.Event) bool { return o.ID == e.ID }) {
				found = append(found, e)
			}
		}
	}
	key := string(bytes.Join(texts, nil))
	if was := l.cache[key]; was != nil && (was.served < 2 && l.lies["remembers answers"] || l.lies["remembers answers for good"]) {
		found = was.found
		was.served++
	} else {
		l.cache[key] = &cached{found: found}
	}
	l.mu.Unlock()
	if l.lies["sends foreign events"] {
		e := foreigner()
		c.say(`["EVENT","%s",%s]`, sub, e.AppendJSON(nil))
	}
	for i := range found {
		under := sub
		if l.lies["answers under another subscription"] {
			under = "another"
		}
		c.say(`["EVENT","%s",%s]`, under, l.form(&found[i]))
	}
	c.say(`["EOSE","%s"]`, sub)
}

// foreigner is a valid event that nobody asked for.
var foreigner = sync.OnceValue(func() *corpus.Event { return signed(newKey(), 1, 1_700_000_000, "of somebody else") })

func (l *liar) query(f *corpus.Filter) []corpus.Event {
	var found []corpus.Event
	for _, e := range l.events {
		if l.lies["hides private kinds"] && (e.Kind == 4 || e.Kind == 1059) {
			continue
		}
		if l.matches(f, &e, false) {
			found = append(found, e)
		}
	}
	slices.SortStableFunc(found, func(a, b corpus.Event) int {
		if l.lies["orders ties by arrival"] {
			return cmp.Compare(b.CreatedAt, a.CreatedAt)
		}
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), bytes.Compare(a.ID[:], b.ID[:]))
	})
	if limit := f.Limit; limit != nil && !l.lies["ignores limits"] {
		if l.lies["returns the oldest"] {
			found = found[max(len(found)-*limit, 0):]
		}
		found = found[:min(len(found), *limit)]
	}
	if l.lies["returns thirty at most"] {
		found = found[:min(len(found), 30)]
	}
	if l.lies["answers oldest first"] {
		slices.Reverse(found)
	}
	return found
}
