package reference

import (
	"encoding/json"
	"net/http"
	"strings"
)

// info is the relay information document (NIP-11).
type info struct {
	Name          string     `json:"name"`
	Description   string     `json:"description"`
	SupportedNIPs []int      `json:"supported_nips"`
	Software      string     `json:"software"`
	Version       string     `json:"version"`
	Limitation    limitation `json:"limitation"`
}

type limitation struct {
	MaxMessageLength int  `json:"max_message_length"`
	MaxSubscriptions int  `json:"max_subscriptions"`
	MaxFilters       int  `json:"max_filters"`
	MaxLimit         int  `json:"max_limit,omitempty"`
	MaxSubIDLength   int  `json:"max_subid_length"`
	MaxContentLength int  `json:"max_content_length"`
	AuthRequired     bool `json:"auth_required"`
	PaymentRequired  bool `json:"payment_required"`
	RestrictedWrites bool `json:"restricted_writes"`
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

func (r *relay) info() info {
	o := &r.options
	return info{
		Name:          o.Name,
		Description:   "The reference relay of relaybench, a benchmark of Nostr relays",
		SupportedNIPs: []int{1, 9, 11, 40, 45, 62, 70, 77},
		Software:      "relaybench refrelay",
		Version:       Version,
		Limitation: limitation{
			MaxMessageLength: o.MaxMessageBytes,
			MaxSubscriptions: o.MaxSubscriptions,
			MaxFilters:       o.MaxFilters,
			MaxLimit:         o.MaxLimit,
			MaxSubIDLength:   maxSubID,
			MaxContentLength: o.MaxEventBytes,
		},
	}
}
