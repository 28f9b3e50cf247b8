package mockserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
	"github.com/oncehttp/oncehttp/profile"
)

// This file makes the body of an event: by the proofs of the profile, from the request and its answer.

// proofFor returns the profile's entry for the event (a webhook) that the API sends when the operation of this request has taken effect; nil if there
// is none.
func proofFor(w *profile.Webhook, r *http.Request) *profile.EventProof {
	for i := range w.Proofs {
		for _, o := range w.Proofs[i].Operations {
			if o.Method == r.Method && fits(o.Path, r.URL.EscapedPath()) {
				return &w.Proofs[i]
			}
		}
	}
	return nil
}

// fits reports whether a path matches a pattern segment by segment; a segment such as {id} matches any non-empty one.
func fits(pattern, path string) bool {
	want, is := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(is) {
		return false
	}
	for i := range want {
		if want[i] != is[i] && (!strings.HasPrefix(want[i], "{") || is[i] == "") {
			return false
		}
	}
	return true
}

// body returns the unsigned body of the event (webhook) about the effect of x; nil if it cannot be written, since an amount is no number. The fields
// of w and p are JSON pointers to the places of an event's parts, "" for a part that the API does not have. w.Type may have several pointers, for the
// parts of the type between its dots; p.Where has fixed values. The fault EventOther says the wrong environment (live or test). The signature of
// adyen has its place in the body; it is filled in later. The caller holds mu.
func (e *events) body(w *profile.Webhook, p *profile.EventProof, x *exchange, fault EventFault) []byte {
	request := keylayer.AsJSON(x.Request, x.Body)
	event, whole := map[string]any{}, map[string]any{}
	types := strings.Fields(w.Type)
	for i, part := range strings.SplitN(p.Type, ".", len(types)) {
		put(event, types[i], part)
	}
	put(event, w.ID, fmt.Sprintf("evt_%d", e.effects))
	for _, v := range p.Where {
		put(event, v.Pointer, v.Equals[0])
	}
	put(event, p.Key, x.seen.Key)
	for _, f := range []profile.EventField{p.Reference, p.Amount, p.Currency, e.Reference} {
		if value, found := keylayer.LookupText(request, f.Request); found && f.Event != "" {
			var spelled any = value
			if f == p.Amount {
				spelled = json.Number(value) // without quotes
			}
			put(event, f.Event, spelled)
		}
	}
	if w.Scheme == "adyen" {
		put(event, "/additionalData/hmacSignature", "")
	}
	if account := x.Request.Header.Get(w.AccountHeader); w.AccountHeader != "" && account != "" {
		put(event, w.Account, account)
	}
	if account, found := keylayer.LookupText(request, w.AccountField); w.AccountField != "" && found {
		put(event, w.Account, account)
	}
	merchant := e.Merchant
	if merchant == "" && !w.MerchantOptional {
		merchant = "mock"
	}
	if merchant != "" {
		put(event, w.Merchant, merchant)
	}
	if w.Scheme == "stripe" {
		put(event, w.Created, time.Now().Unix())
	} else {
		put(event, w.Created, time.Now().UTC().Format(time.RFC3339))
	}
	live := !e.Test
	if fault == EventOther {
		live = !live
	}
	if w.Events == "" {
		whole = event
	} else {
		put(whole, w.Events, []any{within(w.Event, event)})
	}
	if w.Live != "" {
		put(whole, w.Live, live == (w.LiveValue == "true")) // LiveValue: of live events; "false" where the member says test
	}
	text, err := json.Marshal(whole)
	if err != nil { // the amount is no number
		return nil
	}
	return text
}

// within returns an object with the event at the pointer; an empty pointer means the event itself.
func within(pointer string, event map[string]any) any {
	if pointer == "" {
		return event
	}
	entry := map[string]any{}
	put(entry, pointer, event)
	return entry
}

// put sets the value at a pointer, and makes the objects above it. An empty pointer sets nothing.
func put(at map[string]any, pointer string, value any) {
	if pointer == "" {
		return
	}
	names := strings.Split(pointer[1:], "/")
	for i, name := range names {
		names[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
	}
	for _, name := range names[:len(names)-1] {
		next, is := at[name].(map[string]any)
		if !is {
			next = map[string]any{}
			at[name] = next
		}
		at = next
	}
	at[names[len(names)-1]] = value
}
