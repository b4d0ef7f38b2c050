package results

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// old1 is a record of form 1 with what has to be taken apart.
const old1 = `{"schema":"relaybench/results/1","calibration":[
 {"name":"null relay, EVENT to OK, 4 connections","value":2,"unit":"events/s"},{"name":"null relay, EVENT to OK, 1 connection","value":1,"unit":"events/s"},
 {"name":"signature checks, all cores","value":3,"unit":"checks/s"}],
"relays":[{"name":"a"},{"name":"b"}],
"measurements":[
 {"relay":"a","scenario":"query.thread.varied","metric":"eose","unit":"ms","better":"lower","trials":[1]},
 {"relay":"a","scenario":"ingest.throughput","metric":"accepted","unit":"events/s","better":"higher","trials":[1],"note":"limited by the harness; coarse: from little"},
 {"relay":"a","scenario":"ingest.throughput","metric":"rejected: rate-limited","unit":"events","better":"none","trials":[3]},
 {"relay":"a","scenario":"fetch.by-id.c4.f8.b50.raw-deflate","metric":"records/s","unit":"events/s","better":"higher","trials":[1],"note":"incomplete: cut by --cell-time 2s"},
 {"relay":"a","scenario":"fetch.by-id.c4.adaptive.b50.parsed","metric":"with 16 in flight","unit":"events/s","better":"none","trials":[1],"note":"incomplete: unresolved, nobody knows"},
 {"relay":"a","scenario":"fetch.giant.raw","metric":"records/s","unit":"events/s","better":"higher","trials":[],"note":"the relay is gone"},
 {"relay":"a","peer":"b","scenario":"negentropy.heartbeat","metric":"time","unit":"ms","better":"lower","trials":[1]},
 {"relay":"a","peer":"b","scenario":"sync.native","metric":"refused: error","unit":"events","better":"none","trials":[1]},
 {"relay":"a","scenario":"mine.own","metric":"x","unit":"ms","better":"lower","trials":[1],"note":"a remark"}],
"findings":[
 {"relay":"a","scenario":"ingest.throughput","check":"nothing acknowledged is missing","ok":false,"required":true,"detail":"3 missing","evidence":["x"]},
 {"relay":"a","scenario":"preflight","check":"returns text unchanged","ok":false,"required":true,"detail":"d"},
 {"relay":"a","peer":"b","scenario":"negentropy.identical","check":"converges","ok":false,"required":true,"detail":"4 missing: acknowledged but lost"},
 {"relay":"a","scenario":"query.thread.hot","check":"returns what the model returns","ok":false,"required":true,"detail":"d",
  "evidence":["of the missing, the relay had acknowledged 1, refused 2, never answered 3"]},
 {"relay":"a","scenario":"negentropy.probe","check":"speaks NIP-77","ok":false,"required":false,"detail":"no"},
 {"relay":"a","scenario":"x","check":"something else","ok":true,"required":true,"detail":"fine"},
 {"relay":"a","scenario":"ingest.throughput","check":"accepts what a compliant relay keeps","ok":false,"required":true,
  "detail":"of 9 events that a compliant relay keeps: 4 refused"}]}`

func TestRecordsOfForm1AreUpgraded(t *testing.T) {
	r, err := parseRecord([]byte(old1))
	if err != nil {
		t.Fatal(err)
	}
	if r.Schema != Schema {
		t.Errorf("schema %q", r.Schema)
	}
	wantCalibration := []Calibration{{"null relay, EVENT to OK", Labels{LabelConnections: "4"}, 2, "events/s"},
		{"null relay, EVENT to OK", Labels{LabelConnections: "1"}, 1, "events/s"}, {"signature checks, all cores", nil, 3, "checks/s"}}
	if !reflect.DeepEqual(r.Calibration, wantCalibration) {
		t.Errorf("calibration %+v", r.Calibration)
	}
	for i, want := range []Measurement{
		{Scenario: "query.thread.varied", Metric: "eose", Labels: Labels{LabelQuery: "thread", LabelForm: "varied"}},
		{Scenario: "ingest.throughput", Metric: "accepted", Status: []Status{{Code: StatusLimited}, {Code: StatusCoarse}}},
		{Scenario: "ingest.throughput", Metric: "rejected events", Labels: Labels{LabelReason: "rate-limited"}},
		{Scenario: "fetch.by-id", Metric: "records/s", Labels: Labels{LabelStrategy: "by-id", LabelConnections: "4", LabelInFlight: "8", LabelBatch: "50", LabelForm: "raw", LabelEncoding: "deflate"},
			Status: []Status{{Code: StatusIncomplete, Cause: CauseCut, Texts: map[string]string{"limit": "--cell-time 2s"}}}},
		{Scenario: "fetch.by-id", Metric: "step", Labels: Labels{LabelStrategy: "by-id", LabelConnections: "4", LabelInFlight: "adaptive", LabelStep: "16", LabelBatch: "50", LabelForm: "parsed"},
			Status: []Status{{Code: StatusIncomplete, Cause: CauseUnresolved, Texts: map[string]string{"text": "nobody knows"}}}},
		{Scenario: "fetch.giant", Metric: "records/s", Labels: Labels{LabelStrategy: "giant", LabelForm: "raw"},
			Status: []Status{{Code: StatusNotMeasured, Cause: StatusText, Texts: map[string]string{"text": "the relay is gone"}}}},
		{Scenario: "negentropy.heartbeat", Metric: "time", Labels: Labels{LabelPhase: "heartbeat"}},
		{Scenario: "sync.native", Metric: "refused", Labels: Labels{LabelMode: "native", LabelReason: "error"}},
		{Scenario: "mine.own", Metric: "x", Status: []Status{{Code: StatusText, Texts: map[string]string{"text": "a remark"}}}},
	} {
		got := r.Measurements[i]
		if got.Scenario != want.Scenario || got.Metric != want.Metric || !got.Labels.Equal(want.Labels) || !reflect.DeepEqual(got.Status, want.Status) {
			t.Errorf("measurement %d: %+v, want %+v", i, got, want)
		}
		if r.Scenario(got.Scenario) == nil {
			t.Errorf("%s is not described", got.Scenario)
		}
	}
	if s := r.Scenario("query.thread.varied"); s.Section != "Queries" || s.Layout != LayoutQueries || s.Primary != "eose" || len(s.Headlines) != 2 || s.Headlines[0].Title != "varied queries" {
		t.Errorf("%+v", s)
	}
	for i, want := range []Finding{
		{Code: CodeAcknowledgedKept, Verdict: Failed, Blames: "a", BearsOn: everything},
		{Code: CodeText, Verdict: Stated},
		{Code: CodeHoldsUnion, Verdict: Failed, Blames: "a", BearsOn: everything},
		{Code: CodeModel, Verdict: Failed, Blames: "a", BearsOn: []Scope{{Scenario: "query.thread.hot.*", Labels: Labels{LabelQuery: "thread", LabelForm: "hot"}}}},
		{Code: CodeNIP77, Verdict: Stated},
		{Code: "something else", Verdict: Passed},
		{Code: CodeAccepts, Verdict: Failed, Blames: "a", BearsOn: keeps},
	} {
		got := r.Findings[i]
		if got.Code != want.Code || got.Verdict != want.Verdict || got.Blames != want.Blames || !reflect.DeepEqual(got.BearsOn, want.BearsOn) {
			t.Errorf("finding %d: %+v, want %+v", i, got, want)
		}
		if got.Cause != StatusText || got.Texts["text"] == "" {
			t.Errorf("finding %d lost its words: %+v", i, got)
		}
	}
	for i, want := range map[int]map[string]float64{3: {"missing.acknowledged": 1, "missing.refused": 2, "missing.unanswered": 3}, 6: {"of": 9, "refused": 4}} {
		if !reflect.DeepEqual(r.Findings[i].Counts, want) {
			t.Errorf("finding %d counts %v, want %v", i, r.Findings[i].Counts, want)
		}
	}
	if r.Scenario("negentropy.probe") == nil || r.Scenario("preflight") != nil || r.Scenario("x") != nil {
		t.Errorf("described: %+v", r.Scenarios)
	}
}

func TestWhatIsNewerIsRefusedByName(t *testing.T) {
	_, err := parseRecord([]byte(`{"schema":"relaybench/results/3"}`))
	if err == nil || !strings.Contains(err.Error(), `"relaybench/results/3"`) || !strings.Contains(err.Error(), Schema) {
		t.Error(err)
	}
}

func TestStrangeRecordsOfForm1AreReadOrRefused(t *testing.T) {
	const head = `{"schema":"relaybench/results/1",`
	for _, test := range []struct{ name, text, want string }{
		{"an empty part of a key", `"relays":[{"name":""}],"measurements":[{"scenario":"fetch.by-id..raw"}],"findings":[{"scenario":"fetch...."}]}`, ""},
		{"no key", `"relays":[{}],"measurements":[{}],"findings":[{}]}`, ""},
		{"many notes", `"measurements":[{"note":"` + strings.Repeat("a; ", MaxStatus+1) + `"}]}`, "101 notes"},
		{"many findings", `"findings":[` + strings.Repeat("{},", MaxFindings) + `{}]}`, "10001 findings"},
		{"many trials", `"measurements":[{"trials":[` + strings.Repeat("1,", MaxTrials) + `1]}]}`, "10001 trials"},
	} {
		_, err := parseRecord([]byte(head + test.text))
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestARecordOfMoreThanAReportHoldsIsRefusedByName(t *testing.T) {
	for want, r := range map[string]Record{
		"10001 findings": {Findings: make([]Finding, MaxFindings+1)},
		"201 relays":     {Relays: make([]Relay, MaxRelays+1)},
		"1001 metrics":   {Metrics: make([]Metric, MaxMetrics+1)},
		"1001 pieces":    {Findings: []Finding{{Evidence: make([]Evidence, MaxEvidence+1)}}},
		"101 notes":      {Measurements: []Measurement{{Status: make([]Status, MaxStatus+1)}}},
		"5001 scenarios": {Measurements: scenariosOf(MaxScenarios + 1)},
		"":               {Findings: make([]Finding, MaxFindings), Measurements: scenariosOf(MaxScenarios - 1)},
	} {
		if err := r.withinLimits(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func scenariosOf(n int) []Measurement {
	all := make([]Measurement, n)
	for i := range all {
		all[i].Scenario = fmt.Sprint("s", i)
	}
	return all
}

func TestVerdictsAreRead(t *testing.T) {
	const head = `{"schema":"` + Schema + `","relays":[{"name":"a"}],"findings":[{"relay":"a","scenario":"preflight","code":"stores","verdict":`
	r, err := parseRecord([]byte(head + `"failed"}]}`))
	if err != nil || len(r.Findings[0].BearsOn) != 1 || r.Findings[0].BearsOn[0].Scenario != "*" {
		t.Errorf("a failed check that says not on what it bears: %+v, %v", r, err)
	}
	for _, verdict := range []string{"FAILED", ""} {
		if _, err := parseRecord([]byte(head + `"` + verdict + `"}]}`)); err == nil || !strings.Contains(err.Error(), `verdict "`+verdict+`"`) {
			t.Errorf("%q: %v", verdict, err)
		}
	}
}
