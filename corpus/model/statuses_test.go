package model

import (
	"context"
	"testing"

	"relaybench/corpus/prepare"
	"relaybench/corpus/synthetic"
)

func TestStatusesAreThoseOfTheModel(t *testing.T) {
	c, err := prepare.Synthetic(context.Background(), synthetic.Spec{Events: 2000, Seed: 8, BaseTime: 1_780_272_000}, prepare.Options{KeepDeletions: true}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for name, offered := range map[string]func(int) bool{"all": nil, "two of three": func(i int) bool { return i%3 > 0 }} {
		want, err := New(c, offered, 1_780_272_000)
		if err != nil {
			t.Fatal(err)
		}
		got, err := NewStatuses(c, offered, 1_780_272_000)
		if err != nil {
			t.Fatal(err)
		}
		superseded := 0
		for i := range c.Len() {
			if got.Why(i) != want.Why(i) || got.Holds(i) != want.Holds(i) || got.Optional(i) != want.Optional(i) {
				t.Fatalf("%s: event %d is %v, %v, and %v, %v by the model", name, i, got.Why(i), got.Optional(i), want.Why(i), want.Optional(i))
			}
			if want.Why(i) == Superseded {
				superseded++
			}
		}
		if superseded == 0 {
			t.Errorf("%s: no event is superseded, which tests nothing", name)
		}
	}
}
