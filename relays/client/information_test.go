package client

import (
	"reflect"
	"strings"
	"testing"
)

func TestEachFieldOfADocumentIsReadByItself(t *testing.T) {
	for text, want := range map[string]Information{
		`{"limitation":{"max_limit":300}}`:                                                              {Limits: Limits{Events: 300}},
		`{"limitation":{"max_limit":-5}}`:                                                               {},
		`{"limitation":{"max_limit":0}}`:                                                                {},
		`{"limitation":{"max_limit":99999999999999999999}}`:                                             {},
		`{"limitation":{"max_limit":"many","max_subscriptions":1}}`:                                     {Limits: Limits{Subscriptions: 1}},
		`{"limitation":{"max_limit":2.5},"version":"1.2"}`:                                              {Version: "1.2"},
		`{"limitation":{"auth_required":true,"payment_required":true,"max_limit":100}}`:                 {Limits: Limits{Events: 100}, Auth: true, Payment: true},
		`{"limitation":{"auth_required":"yes","payment_required":1}}`:                                   {},
		`{"limitation":{"max_subscriptions":20,"max_message_length":1},"version":7}`:                    {Limits: Limits{Subscriptions: 20}},
		`{"supported_nips":[1,77,-3,2.5],"limitation":[],"version":"` + strings.Repeat("x", 101) + `"}`: {NIPs: []int{1, 77}},
		`{"supported_nips":"all"}`:                                                                      {},
		`{}`:                                                                                            {},
	} {
		if got, err := parseInformation([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%.80s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{`null`, `[]`, `<html>`, ``, strings.Repeat(`{"limitation":`, 20_000)} {
		if got, err := parseInformation([]byte(text)); err == nil {
			t.Errorf("%.80s: %+v", text, got)
		}
	}
}
