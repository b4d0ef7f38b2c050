// Package reference is relaybench's own Nostr relay: the protocol on one side (NIPs 1, 9, 11, 40,
// 45, 62, 70 and 77), a Store on the other. It is what a fresh machine measures against, and with
// the null store the yardstick of the harness itself.
//
// The way of an event: the connection's goroutine splits the message; a pool of verifiers parses it
// and checks id and signature; one committer takes verified events in the order of arrival, applies
// the rules in a group's transaction, answers OK after its commit, and hands what is new to the
// hub, which passes it on to live subscriptions. The way of a query: a goroutine of its own reads
// bounded batches, each in a short read transaction, and sends them as the peer has room.
package reference

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"relaybench/relays/wire"
)

// Version is the relay's version, as NIP-11 and `refrelay --version` show it.
const Version = "1.0.0"

// Options say how to serve. Zero values take the defaults; only Store is needed.
type Options struct {
	Store Store

	Name     string // NIP-11 name; "relaybench reference relay"
	URL      string // under which clients know this relay (NIP-62); ws:// and the listener's address
	NoVerify bool   // take ids and signatures on trust

	MaxMessageBytes   int // longest client message; 1 MiB, at most 16 MiB
	MaxEventBytes     int // longest event as sent; MaxMessageBytes
	MaxLimit          int // most events that one filter is answered with; 0: as many as match
	MaxSubscriptions  int // open at a time on one connection; 64
	MaxFilters        int // in one REQ or COUNT; 64
	MaxFilterElements int // values listed in all filters of one REQ or COUNT; 10,000
	MaxPending        int // bytes of live events that a slow subscriber may be behind; 4 MiB

	NegMaxEvents  int           // most events of one reconciliation (NIP-77); 0: no limit for time ranges, a million for other filters
	NegFrameLimit int           // longest negentropy message sent, before hexadecimal digits double it; 500,000
	NegSessions   int           // reconciliations open at a time on one connection; 16
	NegIdle       time.Duration // how long one may hear nothing; 60 s
	NegRebuild    bool          // build the set anew at each NEG-OPEN, as relays without a live index do

	Delay  time.Duration // between the commit of an event and its OK: latency that costs no throughput of its own; 0
	Faults *Faults       // for tests: ways to misbehave; nil for none

	Stall    time.Duration // how long a peer may read nothing that waits for it; 30 s
	StopTime time.Duration // how long a graceful stop may take; 1.5 s

	Now func() time.Time              // for NIP-40; time.Now
	Log func(format string, a ...any) // trouble worth telling; nothing by default
}

func (o Options) withDefaults(addr net.Addr) (Options, error) {
	if o.Store == nil {
		return o, errors.New("no store to serve from")
	}
	o.Faults.apply(&o)
	setDefault(&o.Name, "relaybench reference relay")
	setDefault(&o.URL, "ws://"+addr.String())
	setDefault(&o.MaxMessageBytes, 1<<20)
	setDefault(&o.MaxEventBytes, o.MaxMessageBytes)
	setDefault(&o.MaxSubscriptions, 64)
	setDefault(&o.MaxFilters, 64)
	setDefault(&o.MaxFilterElements, 10_000)
	setDefault(&o.MaxPending, 4<<20)
	setDefault(&o.NegFrameLimit, 500_000)
	setDefault(&o.NegSessions, 16)
	setDefault(&o.NegIdle, time.Minute)
	setDefault(&o.Stall, 30*time.Second)
	setDefault(&o.StopTime, 1500*time.Millisecond)
	if o.MaxMessageBytes < 256 || o.MaxMessageBytes > 16<<20 {
		return o, fmt.Errorf("a message limit of %d bytes is not between 256 and %d", o.MaxMessageBytes, 16<<20)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	return o, nil
}

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

const maxConnections = 4096 // open at a time

// relay is a server at work.
type relay struct {
	options Options
	log     func(format string, a ...any)
	rules   rules
	hub     hub
	index   *indexed
	ingest  *ingest
	ended   context.Context // Serve's
	readers chan struct{}   // bounds the read transactions, and with them memory

	mu       sync.Mutex
	conns    map[*outbox]struct{} // WebSockets only
	stopping bool
	sessions sync.WaitGroup
}

// Serve answers clients until ctx ends, then stops gracefully: no more is read, what has arrived is
// committed and answered, and every connection is closed with a reason. It closes the listener, and
// not the store. The error is nil after a graceful stop.
func Serve(ctx context.Context, l net.Listener, o Options) error {
	defer l.Close()
	o, err := o.withDefaults(l.Addr())
	if err != nil {
		return err
	}
	if o.Faults.has("half-open") { // the system takes connections, and nobody answers
		<-ctx.Done()
		return nil
	}
	r := &relay{options: o, log: o.Log, rules: rules{o.URL}, ended: ctx, conns: map[*outbox]struct{}{},
		readers: make(chan struct{}, max(4, 2*runtime.GOMAXPROCS(0)))}
	if _, isNull := o.Store.(Null); isNull {
		return r.serveHTTP(ctx, wire.BufferedListener(l), r.serveNull, func() {})
	}
	if r.index, err = newIndexed(o.Store); err != nil {
		return fmt.Errorf("reading the store: %w", err)
	}
	r.options.Store = r.index
	r.ingest = startIngest(r)
	return r.serveHTTP(ctx, outboxListener{l, &r.options}, r.serveClient, r.stop)
}

// connKey finds a request's connection in its context.
type connKey struct{}

func (r *relay) serveHTTP(ctx context.Context, l net.Listener, upgraded func(*websocket.Conn, net.Conn), stop func()) error {
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       30 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { r.handleHTTP(w, req, upgraded) }),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		stop()
		return fmt.Errorf("accepting connections: %w", err)
	case <-ctx.Done():
		server.Close() // WebSockets are no longer the server's
		<-failed
		stop()
		return nil
	}
}

func (r *relay) handleHTTP(w http.ResponseWriter, req *http.Request, upgraded func(*websocket.Conn, net.Conn)) {
	if !strings.EqualFold(req.Header.Get("Upgrade"), "websocket") {
		r.serveInfo(w, req)
		return
	}
	conn := req.Context().Value(connKey{}).(net.Conn)
	ws, err := websocket.Accept(w, req, &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return // Accept has answered
	}
	ws.SetReadLimit(int64(r.options.MaxMessageBytes))
	upgraded(ws, conn)
}

func (r *relay) serveInfo(w http.ResponseWriter, req *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Headers", "*")
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
	switch {
	case req.Method == http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
	case req.Method != http.MethodGet && req.Method != http.MethodHead:
		http.Error(w, "only GET is understood here", http.StatusMethodNotAllowed)
	case strings.Contains(req.Header.Get("Accept"), "application/nostr+json"):
		h.Set("Content-Type", "application/nostr+json")
		json.NewEncoder(w).Encode(r.info())
	default:
		h.Set("Content-Type", "text/plain; charset=utf-8")
		w.Write([]byte(r.options.Name + ": a Nostr relay. Connect with a Nostr client, over WebSocket.\n"))
	}
}

// info is the relay information document (NIP-11).
func (r *relay) info() map[string]any {
	o := &r.options
	limits := map[string]any{"max_message_length": o.MaxMessageBytes, "max_subscriptions": o.MaxSubscriptions, "max_filters": o.MaxFilters,
		"max_subid_length": maxSubID, "max_content_length": o.MaxEventBytes,
		"auth_required": false, "payment_required": false, "restricted_writes": false}
	if o.MaxLimit > 0 {
		limits["max_limit"] = o.MaxLimit
	}
	return map[string]any{"name": o.Name, "description": "The reference relay of relaybench, a benchmark of Nostr relays",
		"supported_nips": []int{1, 9, 11, 40, 45, 62, 70, 77}, "software": "relaybench refrelay", "version": Version, "limitation": limits}
}

func (r *relay) serveClient(ws *websocket.Conn, conn net.Conn) {
	out, refused := conn.(*outbox), ""
	r.mu.Lock()
	switch {
	case r.stopping:
		refused = "the relay is shutting down"
	case len(r.conns) >= maxConnections:
		refused = "too many connections"
	default:
		r.conns[out] = struct{}{}
		r.sessions.Add(1)
	}
	r.mu.Unlock()
	if refused != "" {
		out.end(closeTryLater, refused)
		ws.CloseNow()
		return
	}
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.conns, out)
		r.sessions.Done()
	}()
	newSession(r, ws, out).serve()
}

// stop ends all sessions: their reading, and once what they sent is answered, their connections.
func (r *relay) stop() {
	r.mu.Lock()
	r.stopping = true
	conns := slices.Collect(maps.Keys(r.conns))
	r.mu.Unlock()
	for _, c := range conns {
		c.stopReading()
	}
	r.sessions.Wait()
	r.ingest.stop()
	for _, c := range conns {
		c.end(closeGoingAway, "the relay is shutting down")
	}
	patience := time.After(r.options.StopTime)
	for _, c := range conns {
		select {
		case <-c.done:
		case <-patience:
			return
		}
	}
}

// reading reads the store when it is its turn.
func (r *relay) reading(read func(Store) error) error {
	r.readers <- struct{}{}
	defer func() { <-r.readers }()
	return read(r.options.Store)
}

func (r *relay) now() int64 { return r.options.Now().Unix() }

// sameRelay compares relay URLs but for a slash at the end and the case of scheme and host.
func sameRelay(a, b string) bool {
	ua, errA := url.Parse(strings.TrimSpace(a))
	ub, errB := url.Parse(b)
	return errA == nil && errB == nil && strings.EqualFold(ua.Scheme, ub.Scheme) && strings.EqualFold(ua.Host, ub.Host) &&
		strings.TrimSuffix(ua.Path, "/") == strings.TrimSuffix(ub.Path, "/")
}

// outboxListener gives every connection its outbox.
type outboxListener struct {
	net.Listener
	options *Options
}

func (l outboxListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	o := newOutbox(c, l.options.Stall, l.options.Log)
	if mb := l.options.Faults.value("kill-pending"); mb > 0 {
		o.most = max(1, int(mb*1e6))
	}
	return o, nil
}
