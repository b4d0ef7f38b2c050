package gate

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/BurntSushi/toml"

	"relaybench/report"
)

// Threshold is what the figures that a pattern fits may worsen by.
type Threshold struct {
	Pattern string  // a glob of "scenario metric": "query.* eose"
	Share   float64 // 0.05 for 5 %
}

// ParseThresholds reads thresholds in TOML, a figure's pattern and per cent a line:
//
//	"query.* eose" = 10
//	"storage allocated" = 1.5
//
// * stands for any characters, ? for one. Of several patterns that fit, the one with the most
// characters that are neither wins.
func ParseThresholds(text string) ([]Threshold, error) {
	var values map[string]toml.Primitive
	meta, err := toml.Decode(text, &values)
	if err != nil {
		var parse toml.ParseError
		if errors.As(err, &parse) {
			return nil, fmt.Errorf("line %d: %s", parse.Position.Line, report.Visible(parse.Message))
		}
		return nil, err
	}
	var all []Threshold
	for _, key := range meta.Keys() {
		if len(key) != 1 {
			return nil, fmt.Errorf("%q is in a table; write one line a figure, \"scenario metric\" = per cent, with quotes around the name", report.Visible(key.String()))
		}
		percent := 0.0
		if err := meta.PrimitiveDecode(values[key[0]], &percent); err != nil || !(percent >= 0 && percent <= 10_000) {
			return nil, fmt.Errorf("%q: give per cent, a number from 0 to 10000; a name with dots or blanks wants quotes", report.Visible(key[0]))
		}
		all = append(all, Threshold{key[0], percent / 100})
	}
	return all, nil
}

// thresholdFor finds the threshold that fits a figure best.
func thresholdFor(all []Threshold, name string) (best Threshold, ok bool) {
	for _, t := range all {
		literals := func(t Threshold) int {
			return len(t.Pattern) - strings.Count(t.Pattern, "*") - strings.Count(t.Pattern, "?")
		}
		if matchGlob(t.Pattern, name) && (!ok || literals(t) >= literals(best)) {
			best, ok = t, true
		}
	}
	return best, ok
}

// matchGlob is path.Match with slashes, which metrics such as queries/s have, as any character.
func matchGlob(pattern, name string) bool {
	pattern = strings.NewReplacer("/", "\x00", `\`, `\\`, "[", `\[`).Replace(pattern)
	ok, err := path.Match(pattern, strings.ReplaceAll(name, "/", "\x00"))
	return ok && err == nil
}
