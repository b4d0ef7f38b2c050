package reference

import (
	"bytes"
	"fmt"
	"testing"

	"relaybench/corpus"
	"relaybench/corpus/prepare"
)

// BenchmarkImport takes 20,000 signed events into an empty store: ns/op is for all of them.
func BenchmarkImport(b *testing.B) {
	const n = 20_000
	var text []byte
	key := testKey(1)
	for i := range n {
		e := note(key, int64(1000+i), fmt.Sprintf("event %d, of about the length that notes have on the average in the wild: some 200 characters of text and a few tags that name people", i),
			corpus.Tag{"p", key.PubKey.String()}, corpus.Tag{"t", fmt.Sprint(i % 100)})
		text = append(e.AppendJSON(text), '\n')
	}
	for _, kind := range []string{"bolt", "sqlite"} {
		for _, trust := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/no-verify=%v", kind, trust), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for range b.N {
					s, err := OpenStore(kind, b.TempDir(), DurabilityCommit)
					if err != nil {
						b.Fatal(err)
					}
					texts, err := prepare.NewTexts(bytes.NewReader(text), "events")
					if err != nil {
						b.Fatal(err)
					}
					im := NewImporter(s, ImportOptions{NoVerify: trust})
					if err := im.Run(b.Context(), texts.Next); err != nil || im.Total().Stored != n {
						b.Fatal(im.Total(), err)
					}
					if err := s.Close(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
			})
		}
	}
}
