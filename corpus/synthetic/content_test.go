package synthetic

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"relaybench/corpus"
)

func TestRepostsEmbedTheNoteAsItStandsInTheCorpus(t *testing.T) {
	t.Parallel()
	v := newView(shaped())
	for i := range v.events {
		e := &v.events[i]
		if e.Kind != 6 {
			continue
		}
		embedded, err := corpus.ParseEvent([]byte(e.Content))
		if err != nil {
			t.Fatalf("repost %d: %v", i, err)
		}
		original := &v.events[v.at[embedded.ID]]
		if string(original.AppendJSON(nil)) != e.Content {
			t.Fatalf("repost %d embeds something else than event %s", i, embedded.ID)
		}
		if tagsNamed(e, "e")[0].Value() != original.ID.String() || tagsNamed(e, "p")[0].Value() != original.PubKey.String() {
			t.Fatalf("repost %d tags another event than it embeds", i)
		}
	}
}

func TestZapReceiptsHoldASignedRequest(t *testing.T) {
	v := newView(shaped())
	checked := 0
	for i := range v.events {
		e := &v.events[i]
		if e.Kind != 9735 {
			continue
		}
		request, err := corpus.ParseEvent([]byte(tagsNamed(e, "description")[0].Value()))
		if err != nil {
			t.Fatalf("receipt %d: %v", i, err)
		}
		if checked++; checked <= 50 { // signatures are slow to check
			if err := request.Verify(); err != nil {
				t.Fatalf("request in receipt %d: %v", i, err)
			}
		}
		if request.Kind != 9734 || request.CreatedAt > e.CreatedAt || tagsNamed(e, "P")[0].Value() != request.PubKey.String() {
			t.Fatalf("receipt %d does not fit its request %+v", i, request)
		}
		for _, name := range []string{"p", "e"} {
			if tagsNamed(&request, name)[0].Value() != tagsNamed(e, name)[0].Value() {
				t.Fatalf("receipt %d and its request differ in their %s tag", i, name)
			}
		}
		amount, _ := strconv.Atoi(tagsNamed(&request, "amount")[0].Value())
		if invoice := tagsNamed(e, "bolt11")[0].Value(); !strings.HasPrefix(invoice, "lnbc"+strconv.Itoa(amount/100)+"n1") {
			t.Fatalf("receipt %d pays %d msat with invoice %s", i, amount, invoice)
		}
	}
	if checked == 0 {
		t.Error("no receipts")
	}
}

func TestArticlesAreSizedDatedAndSomeAreEdited(t *testing.T) {
	type address struct {
		author corpus.PubKey
		d      string
	}
	editions := map[address][]*corpus.Event{}
	events := shaped()
	for i := range events {
		e := &events[i]
		if e.Kind != 30023 {
			continue
		}
		if size := len(e.Content); size < minArticle || size > maxArticle {
			t.Errorf("article %d has %d bytes", i, size)
		}
		if len(tagsNamed(e, "d")) != 1 || e.D() == "" || len(tagsNamed(e, "title")) != 1 {
			t.Errorf("article %d has tags %q", i, e.Tags)
		}
		a := address{e.PubKey, e.D()}
		editions[a] = append(editions[a], e)
	}
	edited := 0
	for a, list := range editions {
		for i, e := range list {
			if got := tagsNamed(e, "published_at")[0].Value(); got != strconv.FormatInt(list[0].CreatedAt, 10) {
				t.Errorf("article %s says it was published at %s, not %d", a.d, got, list[0].CreatedAt)
			}
			if i > 0 && (e.CreatedAt <= list[i-1].CreatedAt || e.Content == list[i-1].Content || !strings.HasPrefix(e.Content, list[0].Content)) {
				t.Errorf("edit %d of article %s does not add to the original at a later time", i, a.d)
			}
		}
		if len(list) > 1 {
			edited++
		}
	}
	if edited < shapeEvents/2000 {
		t.Errorf("%d articles are edited, of %d", edited, len(editions))
	}
}

func TestContactListsHoldDifferentKeysAndRenewalsMostOfThem(t *testing.T) {
	for _, events := range [][]corpus.Event{shaped(), generate(t, Spec{130, 1, testBaseTime})} {
		latest := map[corpus.PubKey]map[string]bool{}
		sizes := map[int]int{}
		for i := range events {
			e := &events[i]
			if e.Kind != 3 {
				continue
			}
			keys := map[string]bool{}
			for _, tag := range e.Tags {
				keys[tag.Value()] = true
			}
			if n := len(e.Tags); n < minFollows || n > maxFollows || len(keys) != n || keys[e.PubKey.String()] {
				t.Fatalf("list %d follows %d keys, %d different", i, n, len(keys))
			}
			sizes[len(keys)/20]++
			if before := latest[e.PubKey]; before != nil {
				kept := 0
				for key := range before {
					if keys[key] {
						kept++
					}
				}
				if kept != len(before)-followsLost {
					t.Fatalf("list %d keeps %d of %d keys", i, kept, len(before))
				}
			}
			latest[e.PubKey] = keys
		}
		if len(events) == shapeEvents && len(sizes) < 6 {
			t.Errorf("list sizes, by twenties: %v", sizes)
		}
	}
}

func TestProfilesAreJSONObjects(t *testing.T) {
	for i, e := range shaped() {
		if e.Kind != 0 {
			continue
		}
		var profile map[string]string
		if err := json.Unmarshal([]byte(e.Content), &profile); err != nil || profile["name"] == "" || profile["about"] == "" {
			t.Fatalf("profile %d: %v in %s", i, err, e.Content)
		}
	}
}

func TestNotesAreLongTailedAndTagged(t *testing.T) {
	var sizes []int
	tagged := 0
	for _, e := range shaped() {
		if e.Kind != 1 {
			continue
		}
		sizes = append(sizes, len(e.Content))
		tags := tagsNamed(&e, "t")
		for _, tag := range tags {
			if tag.Value() != strings.ToLower(tag.Value()) || !strings.Contains(strings.ToLower(e.Content), "#"+tag.Value()) {
				t.Fatalf("hashtag %q does not stand in %q", tag.Value(), e.Content)
			}
		}
		if len(tags) > 0 {
			tagged++
		}
	}
	slices.Sort(sizes)
	n := len(sizes)
	if median, p99 := sizes[n/2], sizes[n*99/100]; median < 60 || median > 250 || p99 < 8*median || sizes[n-1] > 16<<10 {
		t.Errorf("note sizes: median %d, p99 %d, most %d bytes", median, p99, sizes[n-1])
	}
	if share := float64(tagged) / float64(n); math.Abs(share-0.15) > 0.02 {
		t.Errorf("%.3f of the notes carry hashtags", share)
	}
}

func TestTextHoldsWhatTripsCarelessCode(t *testing.T) {
	text := map[string]int{}
	for _, e := range shaped() {
		if e.Kind != 1 {
			continue
		}
		for _, what := range []string{"🔥", "👨‍👩‍👧‍👦", "今", "的", "السلام", "\n", "\t", `"`, `\`, "ñ", "𠮷", "\u200b"} {
			if strings.Contains(e.Content, what) {
				text[what]++
			}
		}
	}
	for _, what := range []string{"🔥", "👨‍👩‍👧‍👦", "今", "的", "السلام", "\n", "\t", `"`, `\`, "ñ", "𠮷", "\u200b"} {
		if text[what] < shapeEvents/2000 {
			t.Errorf("%q stands in %d notes", what, text[what])
		}
	}
}

func TestSyntheticEventsPassPreparationsLimits(t *testing.T) {
	t.Parallel()
	for i, e := range shaped() {
		if size := len(e.AppendJSON(nil)); size > 65_536 {
			t.Errorf("event %d has %d bytes", i, size)
		}
		if len(e.Tags) > 2000 {
			t.Errorf("event %d has %d tags", i, len(e.Tags))
		}
		for _, tag := range e.Tags {
			for _, value := range tag {
				if len(value) > 1024 {
					t.Errorf("event %d has a %s tag of %d bytes", i, tag.Name(), len(value))
				}
				if !utf8.ValidString(value) {
					t.Errorf("event %d has a %s tag that is not UTF-8", i, tag.Name())
				}
			}
		}
		if !utf8.ValidString(e.Content) {
			t.Errorf("event %d has content that is not UTF-8", i)
		}
		parsed, err := corpus.ParseEvent(e.AppendJSON(nil))
		if err != nil || parsed.Hash() != e.ID {
			t.Errorf("event %d does not survive its JSON: %v", i, err)
		}
	}
}

func TestDirectMessagesLookEncrypted(t *testing.T) {
	for i, e := range shaped() {
		if e.Kind != 4 {
			continue
		}
		text, iv, ok := strings.Cut(e.Content, "?iv=")
		if !ok || len(text) < 44 || len(iv) != 24 || len(tagsNamed(&e, "p")) != 1 || e.Tags[0].Value() == e.PubKey.String() {
			t.Fatalf("message %d: %q %s", i, e.Tags, e.Content)
		}
	}
}
