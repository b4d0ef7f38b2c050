package calibrate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"relaybench/corpus"
	"relaybench/corpus/prepare"
	"relaybench/corpus/scan"
	"relaybench/corpus/synthetic"
	"relaybench/harness"
	"relaybench/relays"
	"relaybench/relays/wire"
	"relaybench/results"
)

// nullScript is a null relay that takes its time: it answers each EVENT with OK and each REQ with
// events and EOSE.
type nullScript struct {
	handshake, answer time.Duration // held back for so long
	events            int           // in an answer

	handshakes, oks, sent atomic.Int64
}

func (s *nullScript) serve(t *testing.T) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.handshakes.Add(1)
		time.Sleep(s.handshake)
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		for {
			_, frame, err := conn.Read(r.Context())
			if err != nil {
				return
			}
			parts, err := scan.Elements(frame)
			if err != nil || len(parts) < 2 {
				return
			}
			time.Sleep(s.answer)
			say := func(text string) { _ = conn.Write(r.Context(), websocket.MessageText, []byte(text)) }
			if string(parts[0]) == `"EVENT"` {
				e, err := corpus.ParseEvent(parts[1])
				if err != nil {
					return
				}
				s.oks.Add(1)
				say(fmt.Sprintf(`["OK","%s",true,""]`, e.ID))
			} else if string(parts[0]) == `"REQ"` {
				for i := range s.events {
					s.sent.Add(1)
					say(fmt.Sprintf(`["EVENT",%s,{"id":"%064x"}]`, parts[1], i))
				}
				say(fmt.Sprintf(`["EOSE",%s]`, parts[1]))
			}
		}
	}))
	t.Cleanup(server.Close)
	return "ws" + strings.TrimPrefix(server.URL, "http")
}

func calibratorOf(t *testing.T) *Stage {
	t.Helper()
	c, err := prepare.Synthetic(t.Context(), synthetic.Spec{Events: 50, Seed: 1, BaseTime: 1_780_272_000}, prepare.Options{}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &Stage{Corpus: c, Options: harness.Options{Publishers: 4, QueryConns: 8, Window: 1, Stall: 20 * time.Second},
		effort: effort{rounds: 1, load: 20 * time.Millisecond, longest: 5 * time.Second, echoes: 20}}
}

func TestARoundThatBroughtNothingIsMadeLonger(t *testing.T) {
	const ms = time.Millisecond
	broken := errors.New("broken")
	for _, test := range []struct {
		name  string
		rates []float64 // of one round after another; -1 for an error
		want  float64
		tried []time.Duration
		fails string
	}{
		{"at once", []float64{7, 9}, 9, []time.Duration{100 * ms, 100 * ms}, ""},
		{"the better one counts", []float64{9, 7}, 9, []time.Duration{100 * ms, 100 * ms}, ""},
		{"after a while", []float64{0, 0, 7, 8}, 8, []time.Duration{100 * ms, 200 * ms, 400 * ms, 400 * ms}, ""},
		{"at the last moment", []float64{0, 0, 0, 5, 4}, 5, []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 800 * ms}, ""},
		{"nothing after something is a round", []float64{5, 0}, 5, []time.Duration{100 * ms, 100 * ms}, ""},
		{"never", []float64{0, 0, 0, 0}, 0, []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms}, "the thing: nothing was done in 800ms"},
		{"an error", []float64{0, -1}, 0, []time.Duration{100 * ms, 200 * ms}, "the thing: broken"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := Stage{effort: effort{rounds: 2, longest: 800 * ms}}
			var tried []time.Duration
			got, err := c.best(t.Context(), "the thing", 100*ms, func(d time.Duration) (float64, error) {
				r := test.rates[len(tried)]
				if tried = append(tried, d); r < 0 {
					return 0, broken
				}
				return r, nil
			})
			if got != test.want || !slices.Equal(tried, test.tried) {
				t.Errorf("%g after %v, want %g after %v", got, tried, test.want, test.tried)
			}
			if (test.fails == "") != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), test.fails) {
				t.Errorf("error %v, want %q", err, test.fails)
			}
		})
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	c := Stage{effort: effort{rounds: 2, longest: time.Hour}}
	if _, err := c.best(ended, "the thing", ms, func(time.Duration) (float64, error) { return 0, nil }); !errors.Is(err, broken) {
		t.Errorf("after its context had ended: %v", err)
	}
}

// TestSlowHandshakesAreOutsideTheClock holds the handshakes back for longer than a round takes.
func TestSlowHandshakesAreOutsideTheClock(t *testing.T) {
	script := nullScript{handshake: 50 * time.Millisecond}
	c := calibratorOf(t)
	if err := c.publishing(t.Context(), script.serve(t), 2); err != nil {
		t.Fatal(err)
	}
	if n := script.handshakes.Load(); n != 2 {
		t.Errorf("%d handshakes, want those of one round", n)
	}
	labels := results.Labels{results.LabelConnections: "2"}
	for i, want := range []results.Calibration{{Name: results.CeilingPublish, Labels: labels, Unit: "events/s"}, {Name: results.CostPublish, Labels: labels, Unit: "µs"}} {
		if i >= len(c.figures) {
			t.Fatalf("figures: %+v", c.figures)
		}
		got := c.figures[i]
		if !(got.Value > 0) { // nor no number
			t.Errorf("%s: %g", got.Name, got.Value)
		}
		if got.Value = 0; !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

func TestANullRelayThatNeverSendsAnEventIsNamed(t *testing.T) {
	url := (&nullScript{events: 0}).serve(t)
	c := calibratorOf(t)
	c.effort.longest = 40 * time.Millisecond
	c.Null = &harness.Target{Definition: &relays.Definition{Name: "null", URL: url}}
	err := c.null(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), results.CeilingReceive+" over 8 connections: nothing was done in 40ms") {
		t.Errorf("error %v", err)
	}
	if !slices.ContainsFunc(c.figures, func(f results.Calibration) bool { return f.Name == results.CeilingPublish }) {
		t.Errorf("what was measured before is gone: %+v", c.figures)
	}
}

// TestTheNullRelaysCeilingsAreItsScripts computes the figures from what the relay counted and held
// back.
func TestTheNullRelaysCeilingsAreItsScripts(t *testing.T) {
	const hold, events, connections = 5 * time.Millisecond, 7, 3
	script := nullScript{answer: hold, events: events}
	url, c := script.serve(t), calibratorOf(t)
	timed := func(measured func() error) (seconds float64) {
		start := wire.Now()
		if err := measured(); err != nil {
			t.Fatal(err)
		}
		return (wire.Now() - start).Seconds()
	}
	between := func(what string, got, low, high float64) {
		if got < low || got > high {
			t.Errorf("%s: %g, want %g to %g", what, got, low, high)
		}
	}
	var rate float64
	seconds := timed(func() (err error) {
		rate, err = c.receive(t.Context(), url, connections, 100*time.Millisecond)
		return err
	})
	between("EVENT frames received", rate, float64(script.sent.Load())/seconds, events*connections/hold.Seconds())

	seconds = timed(func() error { return c.publishing(t.Context(), url, connections) })
	between("EVENT to OK", c.figures[0].Value, float64(script.oks.Load())/seconds, connections/hold.Seconds())

	c.figures = nil
	seconds = timed(func() error { return c.echo(t.Context(), url) })
	if c.figures[0].Name != results.EchoMedian || c.figures[0].Unit != "ms" {
		t.Fatalf("%+v", c.figures)
	}
	// Half of the echoes take at least the median, so that the median cannot be more than all of
	// the time.
	between("echo", c.figures[0].Value, harness.Milliseconds(hold), 1000*seconds/(float64(c.effort.echoes)/2))
}

func TestTheCalibrationAfterARunAsksTheNullRelayAlone(t *testing.T) {
	url := (&nullScript{events: 3}).serve(t)
	c := calibratorOf(t)
	c.Null = &harness.Target{Definition: &relays.Definition{Name: "null", URL: url}}
	c.After = true
	figures, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	over := func(n string) results.Labels {
		return results.Labels{results.LabelConnections: n, results.LabelWhen: "after"}
	}
	after := results.Labels{results.LabelWhen: "after"}
	want := []results.Calibration{
		{Name: results.EchoMedian, Labels: after, Unit: "ms"}, {Name: results.EchoTail, Labels: after, Unit: "ms"},
		{Name: results.CeilingPublish, Labels: over("1"), Unit: "events/s"}, {Name: results.CeilingPublish, Labels: over("4"), Unit: "events/s"},
		{Name: results.CeilingReceive, Labels: over("8"), Unit: "events/s"},
	}
	for i := range figures {
		if figures[i].Value <= 0 {
			t.Errorf("%s: %g", figures[i].Name, figures[i].Value)
		}
		figures[i].Value = 0
	}
	if !reflect.DeepEqual(figures, want) {
		t.Errorf("%+v\nwant %+v", figures, want)
	}
	c.Null = nil
	if figures, err := c.Run(t.Context()); err != nil || len(figures) > 0 {
		t.Errorf("without a null relay: %+v, %v", figures, err)
	}
}
