package scenarios

import (
	"maps"
	"strings"
	"testing"
	"time"

	"relaybench/corpus/model"
	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/relays"
	"relaybench/relays/scripted"
	"relaybench/results"
)

var storageFigures = map[string]string{"allocated": "bytes/event lower", "apparent": "bytes/event lower", "allocated in all": "MiB none",
	"write amplification": "bytes/byte lower", "restart": "ms lower", "answer after restart": "ms lower"}

var storageChecks = []string{results.CodeUnaltered, results.CodeOnlyAsked, results.CodeAcknowledgedKept, results.CodeRemembers}

// plainQuestions is how many query templates storage asks, before the stop and after it.
const plainQuestions = 6

// TestWhatIsLeftOnDiskIsMeasured leaves a sparse file of 4 GiB, 8,192 bytes for each message, and
// the store. Of 200 notes 20 are refused, 16 known, and two of the 180 lost when the relay is
// stopped. Every handshake takes d.
func TestWhatIsLeftOnDiskIsMeasured(t *testing.T) {
	t.Parallel()
	const n, acknowledged, lost, sparse, each, d, key = 200, 180, 2, 4 << 30, 8192, 150 * time.Millisecond, "storage"
	const stored = acknowledged - lost
	s := scripted.Script{Persist: true, RefuseEvery: 10, DuplicateEvery: 11, Sparse: sparse, WritePerMessage: each, LoseOnStop: 90, AcceptAfter: d, EOSEAfter: d}
	p := prove(t, s, proving{corpus: scripted.Notes(t, n), scenarios: []harness.Scenario{Throughput{}, Storage{}}, options: harness.Options{Publishers: 1}})
	p.figures(t, key, storageFigures)
	p.verdicts(t, key, but(storageChecks, map[string]results.Verdict{results.CodeAcknowledgedKept: results.Failed, results.CodeRemembers: results.Failed}))
	f := p.counted(t, key, results.CodeAcknowledgedKept, map[string]float64{"lost": lost, "of": acknowledged, "excused": 0})
	if len(f.Evidence) != lost {
		t.Errorf("evidence %+v", f.Evidence)
	}
	after := int64(plainQuestions + 2 + 1) // REQs: two of them by id, one until it is ready
	written := float64(each * (p.relay.Events.N() + p.relay.Reqs.N() - after))
	between(t, "apparent", sparse+written, p.value(t, key, "apparent")*stored, sparse+written+32<<20) // the store grows in large steps
	allocated := p.value(t, key, "allocated") * stored
	between(t, "allocated", written-1, allocated, 2*written+1<<20)
	near(t, "allocated in all", p.value(t, key, "allocated in all"), allocated/(1<<20))
	between(t, "restart in ms", 150, p.value(t, key, "restart"), 1000*p.spans[key].seconds())
	between(t, "answer after restart in ms", 150, p.value(t, key, "answer after restart"), 1000*p.spans[key].seconds())
	least, most := lengths(p.corpus)
	wrote := p.value(t, key, "write amplification")
	between(t, "write amplification", written/(acknowledged*most), wrote, 4*written/(acknowledged*least))
	between(t, "write amplification of the whole boot", p.value(t, "ingest.throughput", "written")*(1<<20)/(acknowledged*most), wrote, 1e9)

	p = prove(t, scripted.Script{RefuseEvery: 1}, proving{corpus: scripted.Notes(t, 20), scenarios: []harness.Scenario{Storage{}}})
	p.figures(t, key, nil)
	p.verdicts(t, key, map[string]results.Verdict{results.CodeCompletes: results.Failed})
}

// TestWhatACleanStopLosesIsHeldAgainstWhomItIsDueTo stops relays over 200 notes.
func TestWhatACleanStopLosesIsHeldAgainstWhomItIsDueTo(t *testing.T) {
	t.Parallel()
	const n, key = 200, "storage"
	notes := scripted.Notes(t, n)
	var all []string
	for i := range n {
		all = append(all, string(notes.Raw(n-1-i)))
	}
	without := func(metrics ...string) map[string]string {
		left := maps.Clone(storageFigures)
		for _, m := range metrics {
			delete(left, m)
		}
		return left
	}
	failed := map[string]results.Verdict{results.CodeAcknowledgedKept: results.Failed, results.CodeRemembers: results.Failed}
	unmeasured := map[string]results.Verdict{results.CodeUnaltered: results.Passed, results.CodeOnlyAsked: results.Passed,
		results.CodeAcknowledgedKept: results.Stated, results.CodeMeasurable: results.Stated}
	for _, test := range []struct {
		name       string
		script     scripted.Script
		durability relays.Durability
		grace      time.Duration
		verdicts   map[string]results.Verdict
		lost       float64
		figures    map[string]string // nil: it is none for this relay
		cause      string
	}{
		{"keeps all", scripted.Script{Persist: true}, relays.DurabilityOpen, 0, but(storageChecks, nil), 0, storageFigures, ""},
		{"loses all", scripted.Script{Persist: true, LoseOnStop: 1}, relays.DurabilityOpen, 0, but(storageChecks, failed), n, without("allocated", "apparent"), ""},
		{"loses a hundredth", scripted.Script{Persist: true, LoseOnStop: 100}, relays.DurabilityOpen, 0, but(storageChecks, failed), n / 100, storageFigures, ""},
		{"loses a hundredth of what it never syncs", scripted.Script{Persist: true, LoseOnStop: 100}, relays.NotDurable, 0, but(storageChecks, failed), n / 100, storageFigures, ""},
		{"forgets when it starts", scripted.Script{Persist: true, ForgetOnStart: true}, relays.Commit, 0, but(storageChecks, failed), n, without("allocated", "apparent"), ""},
		{"loses the order", scripted.Script{Persist: true, ReverseOnStop: true}, relays.DurabilityOpen, 0,
			but(storageChecks, map[string]results.Verdict{results.CodeRemembers: results.Failed}), 0, storageFigures, ""},
		{"never had the order", scripted.Script{Persist: true, Faults: []string{"wrong-order"}}, relays.DurabilityOpen, 0, but(storageChecks, nil), 0, storageFigures, ""},
		{"in memory, and says so", scripted.Script{}, relays.NotDurable, 0, unmeasured, n, nil, results.KeepsNothing},
		{"in memory, and says nothing", scripted.Script{}, relays.DurabilityOpen, 0, unmeasured, n, nil, results.KeepsNothing},
		{"in memory, and promises more", scripted.Script{}, relays.Commit, 0, but(storageChecks, failed), n, without("allocated", "apparent"), ""},
		{"keeps them elsewhere", scripted.Script{Answer: all}, relays.DurabilityOpen, 0,
			map[string]results.Verdict{results.CodeUnaltered: results.Passed, results.CodeOnlyAsked: results.Failed, results.CodeAcknowledgedKept: results.Passed,
				results.CodeMeasurable: results.Stated}, 0, nil, results.KeptElsewhere},
		{"had to be killed", scripted.Script{Persist: true, LoseEvery: 100, StopAfter: time.Minute}, relays.DurabilityOpen, 100 * time.Millisecond,
			map[string]results.Verdict{results.CodeUnaltered: results.Passed, results.CodeOnlyAsked: results.Passed, results.CodeAcknowledgedKept: results.Stated}, n / 100, storageFigures, ""},
		{"does not start again", scripted.Script{Persist: true, StartOnce: true}, relays.DurabilityOpen, 0,
			map[string]results.Verdict{results.CodeRemembers: results.Failed, results.CodeCompletes: results.Failed}, n, map[string]string{}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := prove(t, test.script, proving{corpus: notes, scenarios: []harness.Scenario{Storage{}}, durability: test.durability, grace: test.grace})
			p.verdicts(t, key, test.verdicts)
			if test.verdicts[results.CodeAcknowledgedKept] == results.Failed || test.verdicts[results.CodeRemembers] == results.Failed {
				for i := range p.Measurements {
					if m := &p.Measurements[i]; len(p.Barring(m)) == 0 {
						t.Errorf("%s competes", m.Metric)
					}
				}
			}
			if test.script.StartOnce {
				same(t, "cause", p.finding(t, key, results.CodeRemembers).Cause, results.CauseNoStart)
				same(t, "figures", len(p.all(key, "allocated"))+len(p.all(key, "restart")), 0)
				return
			}
			p.counted(t, key, results.CodeAcknowledgedKept, map[string]float64{"lost": test.lost, "of": n, "excused": 0})
			if test.figures == nil {
				same(t, "figures", len(p.Measurements), 0)
				same(t, "cause", p.finding(t, key, results.CodeMeasurable).Cause, test.cause)
				return
			}
			p.figures(t, key, test.figures)
			if test.lost < n {
				between(t, "bytes an event are of what is still there", 0.999, p.value(t, key, "allocated in all")*(1<<20)/(p.value(t, key, "allocated")*(n-test.lost)), 1.001)
			}
			if test.verdicts[results.CodeRemembers] == results.Failed && test.lost == 0 {
				f := p.finding(t, key, results.CodeRemembers)
				// "empty" has no order, and the plain others are asked for more than one event.
				same(t, "wrong", f.Counts["wrong"], plainQuestions-1)
				if f.Counts["of"] != plainQuestions || f.Counts["misordered"] == 0 || f.Counts["missing"] != 0 || len(f.Evidence) == 0 {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

// TestARelayThatIsKilledIsMeasured publishes all of 200 notes before it kills, of which each tenth
// is refused (20), each 19th known (10, one of them refused), and each 33rd lost (6). Every
// handshake takes d.
func TestARelayThatIsKilledIsMeasured(t *testing.T) {
	t.Parallel()
	const n, acknowledged, lost, d, key = 200, 180, 6, 150 * time.Millisecond, "crash"
	losing := scripted.Script{Persist: true, RefuseEvery: 10, LoseEvery: 33, DuplicateEvery: 19, AcceptAfter: d, WritePerMessage: 4096, Memory: 48 << 20}
	forgetting := scripted.Script{Persist: true, RefuseEvery: 10, AcceptAfter: d, ForgetOnStart: true}
	for _, test := range []struct {
		name       string
		script     scripted.Script
		durability relays.Durability
		verdict    results.Verdict
		lost       float64
	}{
		{"loses", losing, relays.Commit, results.Failed, lost},
		{"loses in batches", losing, relays.Batch, results.Failed, lost},
		{"promises nothing", losing, relays.NotDurable, results.Stated, lost},
		{"forgets", forgetting, relays.DurabilityOpen, results.Stated, acknowledged},
		{"keeps", scripted.Script{Persist: true, RefuseEvery: 10, AcceptAfter: d}, relays.NotDurable, results.Passed, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := prove(t, test.script, proving{corpus: scripted.Notes(t, n), scenarios: []harness.Scenario{Crash{}}, durability: test.durability})
			p.figures(t, key, map[string]string{"ready again": "ms lower", "acknowledged before": "events none"})
			same(t, "acknowledged before", p.value(t, key, "acknowledged before"), acknowledged)
			between(t, "ready again in ms", 150, p.value(t, key, "ready again"), 1000*p.spans[key].seconds())
			same(t, "boots", p.relay.Boots.N(), 3) // one before the scenario, one in a fresh folder, one after the kill
			p.verdicts(t, key, but([]string{results.CodeUnaltered, results.CodeOnlyAsked}, map[string]results.Verdict{results.CodeAcknowledgedKept: test.verdict}))
			f := p.counted(t, key, results.CodeAcknowledgedKept, map[string]float64{"lost": test.lost, "of": acknowledged, "excused": 0})
			if test.lost == lost {
				p.names(t, f, results.EvidenceMissing, 32, 65, 98, 131, 164)
			}
			p.consumed(t, key, scripted.Script{Memory: test.script.Memory})
			if test.script.WritePerMessage > 0 { // all but what was used by the boot before
				between(t, "written by both processes", 0.8*float64(p.spans[key].did.messages)*4096/(1<<20), p.value(t, key, "written"), 1e6)
			}
		})
	}
}

// TestARelayIsKilledInTheMiddle has 768 notes: after 256 answers, which are a third and the first
// time that anything is told, it is killed.
func TestARelayIsKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	const window, key = 8, "crash"
	p := prove(t, scripted.Script{Persist: true}, proving{corpus: scripted.Notes(t, 768), scenarios: []harness.Scenario{Crash{}}, durability: relays.Commit,
		options: harness.Options{Window: window}})
	acknowledged := p.value(t, key, "acknowledged before")
	between(t, "acknowledged before", 256, acknowledged, 256+window)
	f := p.counted(t, key, results.CodeAcknowledgedKept, map[string]float64{"lost": 0, "of": acknowledged, "excused": 0})
	same(t, "verdict on a relay that keeps what it promised", f.Verdict, results.Passed)

	// What an earlier process had acknowledged counts for nothing.
	var ran []string
	before := failing{"before", &ran, func(t *harness.Trial) error { t.Ledger.Set(3, load.Accepted); return nil }}
	p = prove(t, scripted.Script{Persist: true, RefuseEvery: 1}, proving{corpus: scripted.Notes(t, 20), scenarios: []harness.Scenario{before, Crash{}}})
	same(t, "acknowledged before", p.value(t, key, "acknowledged before"), 0)
	p.verdicts(t, key, map[string]results.Verdict{results.CodeCompletes: results.Failed})

	// Whoever stalls before that is not killed for it.
	p = prove(t, scripted.Script{Persist: true, SilentEvery: 1}, proving{corpus: scripted.Notes(t, 20), scenarios: []harness.Scenario{Crash{}},
		options: harness.Options{Stall: 2 * time.Second}})
	p.verdicts(t, key, map[string]results.Verdict{results.CodeCompletes: results.Failed})
	if text := p.finding(t, key, results.CodeCompletes).Texts["error"]; !strings.Contains(text, "made no progress for 2s") {
		t.Error(text)
	}
}

var importFigures = map[string]string{"stored": "events/s higher", "duration": "s none", "held afterwards": "events none", "not stored": "events none",
	"cpu of the command": "s none", "peak rss of the command": "MiB none", "cpu per 1,000 stored": "s lower", "write amplification while importing": "bytes/byte none", "late": "events none", "late by": "ms none"}

var importChecks = []string{results.CodeUnaltered, results.CodeOnlyAsked, results.CodeReturnsNamed, results.CodeImported, results.CodeOnlyKnown}

// gone counts by reason what a compliant relay does not keep of a corpus.
func gone(m *model.Model) (all map[string]float64, held int) {
	all = map[string]float64{}
	for i := range m.Corpus().Len() {
		if m.Holds(i) {
			held++
		} else {
			all[m.Why(i).String()]++
		}
	}
	return all, held
}

// TestAnImportIsMeasured loses each 20th of what it has stored.
func TestAnImportIsMeasured(t *testing.T) {
	t.Parallel()
	const d, cpu, writes, memory, key = 900 * time.Millisecond, 500 * time.Millisecond, 1 << 20, 96 << 20, "import"
	for _, asked := range []bool{false, true} {
		s := scripted.Script{Import: &scripted.Command{Takes: d, LoseEvery: 20, CPU: cpu, Writes: writes, Memory: memory}}
		cause := "reconciled"
		checks := importChecks
		if asked {
			s.NegError, cause = "blocked: no", "asked"
			checks = []string{results.CodeUnaltered, results.CodeOnlyAsked, results.CodeImported}
		}
		p := prove(t, s, proving{corpus: syntheticCorpus(t, 300), scenarios: []harness.Scenario{Import{}}})
		p.figures(t, key, importFigures)
		reasons, must := gone(p.model)
		lost := int(p.relay.Lost.N())
		held := float64(must - lost)
		same(t, "lost", lost, must/20)

		stored := p.one(t, key, "stored")
		same(t, "stored", float64(stored.Samples), held)
		same(t, "held afterwards", p.value(t, key, "held afterwards"), held)
		took := p.value(t, key, "duration")
		between(t, "duration in s", d.Seconds(), took, p.spans[key].seconds())
		near(t, "stored each second, and their time", stored.Trials[0]*took, held)
		used := p.value(t, key, "cpu of the command")
		between(t, "cpu of the command", cpu.Seconds()-0.02, used, p.value(t, key, "cpu"))
		each := p.one(t, key, "cpu per 1,000 stored")
		near(t, "cpu per 1,000 stored", each.Trials[0], used*1000/held)
		same(t, "divided by", float64(each.Samples), held)
		between(t, "peak rss of the command", memory/(1<<20), p.value(t, key, "peak rss of the command"), 4*memory/(1<<20)+400)
		between(t, "peak rss of both", p.value(t, key, "peak rss of the command"), p.value(t, key, "peak rss"), 1e6)
		least, most := lengths(p.corpus)
		between(t, "write amplification", writes/(held*most), p.value(t, key, "write amplification while importing"), p.value(t, key, "written")*(1<<20)/(held*least))
		between(t, "written", writes/(1<<20), p.value(t, key, "written"), 100)
		same(t, "kinds of what is not stored", len(p.all(key, "not stored")), len(reasons))
		for _, m := range p.all(key, "not stored") {
			same(t, "not stored: "+m.Labels[results.LabelReason], m.Trials[0], reasons[m.Labels[results.LabelReason]])
		}

		p.verdicts(t, key, but(checks, map[string]results.Verdict{results.CodeImported: results.Failed}))
		want := map[string]float64{"held": held, "must": float64(must), "file": float64(p.corpus.Len()), "missing." + results.MissingNotImported: float64(lost)}
		for reason, n := range reasons {
			want["rightly."+reason] = n
		}
		f := p.counted(t, key, results.CodeImported, want)
		same(t, "cause", f.Cause, cause)
		for _, e := range f.Evidence {
			same(t, "evidence", [2]string{e.Code, e.Cause}, [2]string{results.EvidenceMissing, results.MissingNotImported})
		}
		if !asked {
			p.counted(t, key, results.CodeReturnsNamed, map[string]float64{"missing": 0, "unnamed": 0, "of": float64(p.corpus.Len())})
		}
	}
}

func TestEachFaultOfAnImportFailsItsOwnCheck(t *testing.T) {
	t.Parallel()
	const key = "import"
	c := syntheticCorpus(t, 200)
	foreign := string(scripted.Notes(t, 1).Raw(0))
	for _, test := range []struct {
		name   string
		script scripted.Script
		differ map[string]results.Verdict
		code   string
		counts func(must, held float64) map[string]float64
	}{
		{"honest", scripted.Script{}, nil, results.CodeReturnsNamed, func(must, _ float64) map[string]float64 { return map[string]float64{"missing": 0, "unnamed": 0} }},
		{"leaves out what it names", scripted.Script{LeaveOutEvery: 40}, map[string]results.Verdict{results.CodeReturnsNamed: results.Stated}, results.CodeReturnsNamed,
			func(must, _ float64) map[string]float64 {
				return map[string]float64{"missing": 0, "unnamed": 0, "late": float64(int(must) / 40)}
			}},
		{"never returns what it names", scripted.Script{Faults: []string{"drop-results:1"}},
			map[string]results.Verdict{results.CodeReturnsNamed: results.Failed, results.CodeImported: results.Failed}, results.CodeReturnsNamed,
			func(must, _ float64) map[string]float64 { return map[string]float64{"missing": must, "unnamed": 0} }},
		{"returns what it does not name", scripted.Script{NegReply: named(0)}, map[string]results.Verdict{results.CodeReturnsNamed: results.Failed}, results.CodeReturnsNamed,
			func(must, _ float64) map[string]float64 { return map[string]float64{"missing": 0, "unnamed": must} }},
		{"names ids of nothing", scripted.Script{NegReply: named(50)}, map[string]results.Verdict{results.CodeReturnsNamed: results.Failed, results.CodeOnlyKnown: results.Failed},
			results.CodeOnlyKnown, func(must, _ float64) map[string]float64 { return map[string]float64{"ids": 50, "twice": 0} }},
		{"breaks NIP-77", scripted.Script{NegReply: "zz"}, map[string]results.Verdict{results.CodeNIP77: results.Failed}, results.CodeImported,
			func(must, _ float64) map[string]float64 { return map[string]float64{"held": must, "must": must} }},
		{"foreign", scripted.Script{Foreign: foreign}, map[string]results.Verdict{results.CodeOnlyAsked: results.Failed}, results.CodeOnlyAsked,
			func(must, _ float64) map[string]float64 {
				return map[string]float64{"events": float64((int(must) + 99) / 100), "elsewhere": 0}
			}},
		{"alters", scripted.Script{Alter: map[string]string{"content": `"x"`}}, map[string]results.Verdict{results.CodeUnaltered: results.Failed}, results.CodeUnaltered,
			func(must, _ float64) map[string]float64 { return map[string]float64{"altered": must, "of": must} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.script.Import = &scripted.Command{}
			p := prove(t, test.script, proving{corpus: c, scenarios: []harness.Scenario{Import{}}})
			checks := importChecks
			if test.differ[results.CodeNIP77] != "" {
				checks = []string{results.CodeUnaltered, results.CodeOnlyAsked, results.CodeImported}
			}
			p.verdicts(t, key, but(checks, test.differ))
			_, must := gone(p.model)
			f := p.finding(t, key, test.code)
			for name, n := range test.counts(float64(must), float64(must)) {
				same(t, test.code+", "+name, f.Counts[name], n)
			}
			late := p.value(t, key, "late")
			same(t, "late", late, p.finding(t, key, test.code).Counts["late"])
			same(t, "by some time", p.value(t, key, "late by") > 0, late > 0)
			if held := p.value(t, key, "held afterwards"); held != float64(must) && test.differ[results.CodeImported] == "" {
				t.Errorf("%v are held, not %d", held, must)
			}
		})
	}
}

// TestAnImportThatFailsIsToldAndHasNoFigures has a command that ends with 7, one that leaves
// nothing, and a relay without any.
func TestAnImportThatFailsIsToldAndHasNoFigures(t *testing.T) {
	t.Parallel()
	const key = "import"
	c := syntheticCorpus(t, 50)
	p := prove(t, scripted.Script{Import: &scripted.Command{Exit: 7, CPU: 300 * time.Millisecond}}, proving{corpus: c, scenarios: []harness.Scenario{Import{}}})
	between(t, "cpu of a command that fails", 0.25, p.value(t, key, "cpu"), 100)
	p.verdicts(t, key, map[string]results.Verdict{results.CodeCompletes: results.Failed})
	same(t, "figures", len(p.all(key, "stored"))+len(p.all(key, "duration")), 0)
	p = prove(t, scripted.Script{Import: &scripted.Command{LoseEvery: 1}}, proving{corpus: c, scenarios: []harness.Scenario{Import{}}})
	same(t, "held afterwards", p.value(t, key, "held afterwards"), 0)
	same(t, "figures for each event of none", len(p.all(key, "cpu per 1,000 stored"))+len(p.all(key, "write amplification while importing")), 0)
	p = prove(t, scripted.Script{}, proving{corpus: c, scenarios: []harness.Scenario{Import{}}})
	p.verdicts(t, key, map[string]results.Verdict{results.CodeMeasurable: results.Stated})
	same(t, "cause", p.finding(t, key, results.CodeMeasurable).Cause, results.NoCommand)
	same(t, "figures", len(p.Measurements), 0)
}

// TestARelayIsFilledByItsImportWhereThatIsAsked has a query ask what an import has stored; no event
// is published.
func TestARelayIsFilledByItsImportWhereThatIsAsked(t *testing.T) {
	t.Parallel()
	p := prove(t, scripted.Script{Import: &scripted.Command{}}, proving{corpus: syntheticCorpus(t, 100), scenarios: append(queriesOf("firehose.hot"), Import{}), seeder: Import{}})
	same(t, "imports", p.relay.Imports.N(), 1)
	same(t, "published", p.relay.Events.N(), 0)
	_, must := gone(p.model)
	same(t, "held afterwards", p.value(t, "import", "held afterwards"), float64(must))
	same(t, "events", p.value(t, "query.firehose.hot", "events"), float64(must))
	p.verdicts(t, "query.firehose.hot", but(queryChecks, nil))
}

// TestAnImportThatFailedIsNotTriedAgain has two queries ask a relay whose import fails in each of
// two trials: they ask what was published then, and the import alone has failed.
func TestAnImportThatFailedIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	for _, all := range [][]harness.Scenario{append(queriesOf("firehose.hot", "firehose.varied"), Import{}), append([]harness.Scenario{Import{}}, queriesOf("firehose.hot")...)} {
		p := prove(t, scripted.Script{Import: &scripted.Command{Exit: 7}}, proving{corpus: syntheticCorpus(t, 60), scenarios: all, seeder: Import{},
			options: harness.Options{Trials: 2}})
		same(t, "imports", p.relay.Imports.N(), 2)
		same(t, "published", p.relay.Events.N() >= 2*60, true)
		p.verdicts(t, "import", map[string]results.Verdict{results.CodeCompletes: results.Failed})
		p.verdicts(t, "query.firehose.hot", but(queryChecks, nil))
		for _, m := range p.Measurements {
			if len(m.Trials) > 2 {
				t.Errorf("%s of %s has %d values in 2 trials", m.Metric, m.Scenario, len(m.Trials))
			}
		}
		same(t, "trials of its processor time", len(p.all("import", "cpu")[0].Trials), 2)
		same(t, "relays", p.Relays[0].Outcome, results.OutcomeOK)
	}
}

// TestWhatAnImportLeftOutWasNotRefused has a query miss what the import lost.
func TestWhatAnImportLeftOutWasNotRefused(t *testing.T) {
	t.Parallel()
	p := prove(t, scripted.Script{Import: &scripted.Command{LoseEvery: 10}}, proving{corpus: scripted.Notes(t, 60), scenarios: queriesOf("firehose.hot"), seeder: Import{}})
	f := p.finding(t, "query.firehose.hot", results.CodeModel)
	same(t, "missing", f.Counts["missing"] > 0, true)
	same(t, "not imported", f.Counts["missing."+results.MissingNotImported], f.Counts["missing"])
}

// TestWhatShouldNotBeThereAfterAnImportIsExtra has a relay that returns all of the corpus, what is
// superseded as well, whatever is asked for.
func TestWhatShouldNotBeThereAfterAnImportIsExtra(t *testing.T) {
	t.Parallel()
	const key = "import"
	c := syntheticCorpus(t, 300)
	s := scripted.Script{Import: &scripted.Command{}, NegError: "blocked: no", Answer: []string{}}
	for i := range c.Len() {
		s.Answer = append(s.Answer, string(c.Raw(i)))
	}
	p := prove(t, s, proving{corpus: c, scenarios: []harness.Scenario{Import{}}})
	reasons, must := gone(p.model)
	if len(reasons) == 0 {
		t.Fatal("nothing of this corpus is superseded")
	}
	want := map[string]float64{"held": float64(c.Len()), "must": float64(must), "file": float64(c.Len())}
	for reason, n := range reasons {
		want["extra."+reason] = n
	}
	p.counted(t, key, results.CodeImported, want)
	same(t, "not stored", len(p.all(key, "not stored")), 0)
	p.verdicts(t, key, but([]string{results.CodeUnaltered},
		map[string]results.Verdict{results.CodeImported: results.Failed, results.CodeOnlyAsked: results.Failed}))
}
