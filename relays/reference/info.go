package reference

import (
	"encoding/json"
	"net/http"
	"strings"
)

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

// info is the relay information document (NIP-11).
func (r *relay) info() map[string]any {
	o := &r.options
	limits := map[string]any{"max_message_length": o.MaxMessageBytes, "max_subscriptions": o.MaxSubscriptions, "max_filters": o.MaxFilters,
		"max_subid_length": maxSubID, "max_content_length": o.MaxEventBytes,
		"auth_required": false, "payment_required": false, "restricted_writes": false}
	if o.MaxLimit > 0 {
		limits["max_limit"] = o.MaxLimit
	}
	return map[string]any{"name": o.Name, "description": "The reference relay of relaybench, a benchmark of Nostr relays",
		"supported_nips": []int{1, 9, 11, 40, 45, 62, 70, 77}, "software": "relaybench refrelay", "version": Version, "limitation": limits}
}
