package report

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"relaybench/report/reporttest"
	"relaybench/results"
)

// form1 is a record of form 1: a run of three relays, of which one loses every twentieth event that
// it acknowledges, and one verifies nothing.
func form1(t testing.TB) *results.Record {
	t.Helper()
	r, err := results.ReadRecord(filepath.Join("testdata", "form1.json"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRecordsOfForm1LookAsTheyShould(t *testing.T) {
	r := form1(t)
	reporttest.Golden(t, "form1.txt", renderTerminal(t, r, TerminalOptions{Width: 100, Files: paths}))
	reporttest.Golden(t, "form1.md", renderMarkdown(t, r))
}

// In form 1 neither of the two at fault was ranked in anything.
func TestVerdictsOnForm1AreInProportion(t *testing.T) {
	v := newView(form1(t))
	titles, standings, ok := v.headToHead()
	if !ok || len(standings) != 3 {
		t.Fatalf("%d standings", len(standings))
	}
	lossy, noverify := standings[1], standings[2]
	if lossy.name != "lossy" || lossy.of != 0 || !strings.Contains(lossy.reason, CheckTitle(results.CodeAcknowledgedKept)) {
		t.Errorf("who loses what it acknowledged competes: %+v", lossy)
	}
	if noverify.of == 0 || noverify.reason != "" {
		t.Errorf("who verifies nothing does not compete in queries: %+v", noverify)
	}
	if c := noverify.cells[slices.Index(titles, "accepted/s")]; c.ratio != 0 || len(c.notes) != 1 {
		t.Errorf("who verifies nothing competes in ingest: %+v", c)
	}
	if c := noverify.cells[slices.Index(titles, "hot queries")]; c.ratio == 0 {
		t.Errorf("and not in queries: %+v", c)
	}
}
