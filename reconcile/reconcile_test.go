package reconcile_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
	"github.com/oncehttp/oncehttp/reconcile"
)

// api answers questions, and keeps them.
type api struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func serve(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) *api {
	t.Helper()
	a := &api{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.asked = append(a.asked, r.Method+" "+r.URL.RequestURI())
		a.mu.Unlock()
		if r.Header.Get("Idempotency-Key") != "" || r.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("%s with header %v", r.URL, r.Header)
		}
		answer(w, r)
	}))
	t.Cleanup(a.Close)
	return a
}

// origin is the server's, as records spell it.
func (a *api) origin() string { return a.URL }

func authorized() reconcile.Asker {
	return reconcile.Asker{Authorize: func(req *http.Request) error { req.Header.Set("Authorization", "Bearer k"); return nil }}
}

// held is an operation that was posted as a form.
func (a *api) held(target, form string) persist.Record {
	return persist.Record{
		ID: persist.ID{Key: "k1"}, State: persist.StateHeld, Origin: a.origin(), Method: "POST", Target: target, WireKey: "k1", Carrier: "header", CarrierName: "Idempotency-Key",
		Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Stripe-Version": {"2026-01-28"}}, Body: []byte(form),
		FirstSent: time.Unix(1_700_000_000, 0),
	}
}

// want holds a resolution to what it should be: the body of what was found, or "" for nothing known.
func want(t *testing.T, name string, res oncehttp.Resolution, err error, body string) {
	t.Helper()
	switch {
	case err != nil:
		t.Errorf("%s: %v", name, err)
	case body == "" && (res.Effect != "" || res.Answer != nil):
		t.Errorf("%s: %+v, want nothing known", name, res)
	case body != "" && (res.Effect != oncehttp.EffectHappened || res.Answer == nil || string(res.Answer.Body) != body):
		t.Errorf("%s: %+v, want that it happened, and %s", name, res, body)
	}
}

// with is a JSON object with more members.
func with(object, members string) string {
	return strings.TrimSuffix(object, "}") + "," + members + "}"
}

// Stripe: exactly one object of the list has the metadata, and what must be equal is, and it names no failure; the list is gone
// through page by page, since five minutes before the first send.
func TestStripe(t *testing.T) {
	t.Parallel()
	ours, theirs := `{"id":"pi_2","amount":100,"currency":"eur","metadata":{"order":"o1"}}`, `{"id":"pi_1","amount":100,"currency":"eur","metadata":{"order":"o2"}}`
	for name, c := range map[string]struct {
		pages []string
		want  string
		fails bool
	}{
		"on the second page":   {pages: []string{theirs, ours}, want: ours},
		"twice":                {pages: []string{ours, strings.Replace(ours, "pi_2", "pi_3", 1)}},
		"another amount":       {pages: []string{strings.Replace(ours, "100", "101", 1)}},
		"nothing":              {pages: []string{theirs}},
		"no amount to compare": {pages: []string{strings.Replace(ours, `"amount":100,`, "", 1)}},
		"not a list":           {pages: nil, fails: true},
		"declined":             {pages: []string{with(ours, `"status":"requires_payment_method","last_payment_error":{"code":"card_declined"}`)}, fails: true},
		"a failed charge":      {pages: []string{with(ours, `"status":"failed","paid":false`)}, fails: true},
		"failed, by its code":  {pages: []string{with(ours, `"failure_code":"card_declined"`)}, fails: true},
		"a failed setup":       {pages: []string{with(ours, `"last_setup_error":{"code":"card_declined"}`)}, fails: true},
		"no failure":           {pages: []string{with(ours, `"status":"succeeded","failure_code":null,"last_payment_error":null`)}, want: with(ours, `"status":"succeeded","failure_code":null,"last_payment_error":null`)},
		"pending":              {pages: []string{with(ours, `"status":"pending"`)}, want: with(ours, `"status":"pending"`)},
		"another's failure":    {pages: []string{with(theirs, `"status":"failed"`), ours}, want: ours},
	} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			at := 0
			for i, object := range c.pages {
				if id := r.URL.Query().Get("starting_after"); id != "" && strings.Contains(object, `"`+id+`"`) {
					at = i + 1
				}
			}
			if len(c.pages) == 0 {
				_, _ = io.WriteString(w, `{"error":{}}`)
				return
			}
			_, _ = fmt.Fprintf(w, `{"object":"list","data":[%s],"has_more":%t}`, c.pages[at], at+1 < len(c.pages))
		})
		ask := authorized().Stripe("/metadata/order", "/amount", "/currency")
		res, err := ask(t.Context(), s.held("/v1/payment_intents", "amount=100&currency=eur&metadata[order]=o1"))
		if c.fails {
			if err == nil || res.Effect != "" {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
			continue
		}
		want(t, name, res, err, c.want)
		first := "GET /v1/payment_intents?created%5Bgte%5D=1699999700&limit=100"
		if len(s.asked) != len(c.pages) || s.asked[0] != first {
			t.Errorf("%s: asked %q, want %q first", name, s.asked, first)
		}
	}
	s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("asked, though the request names no order") })
	if res, err := authorized().Stripe("/metadata/order", "/amount")(t.Context(), s.held("/v1/x", "amount=100")); err == nil || res.Effect != "" {
		t.Errorf("without the order in the request: %+v, %v", res, err)
	}
}

// Increase: the list filtered by the key holds one object, which has the key and what must be equal.
func TestIncrease(t *testing.T) {
	t.Parallel()
	ours := `{"id":"t_1","amount":100,"idempotency_key":"k1"}`
	for name, c := range map[string]struct {
		data, want string
		hold       persist.HoldReason
		fails      bool
	}{
		"one": {data: ours, want: ours}, "none": {}, "two": {data: ours + "," + ours},
		"another amount": {data: strings.Replace(ours, "100", "7", 1)}, "held as a mismatch": {data: ours, hold: persist.HoldMismatch},
		"the filter was not heeded": {data: strings.Replace(ours, "k1", "k2", 1), fails: true},
	} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if got := r.URL.RequestURI(); got != "/ach_transfers?idempotency_key=k1" {
				t.Errorf("asked %s", got)
			}
			_, _ = fmt.Fprintf(w, `{"data":[%s],"next_cursor":null}`, c.data)
		})
		rec := s.held("/ach_transfers", "")
		rec.Header, rec.Body, rec.HoldReason = http.Header{"Content-Type": {"application/json"}}, []byte(`{"amount":100}`), c.hold
		res, err := authorized().Increase("/amount")(t.Context(), rec)
		if c.fails {
			if err == nil || res.Effect != "" {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
			continue
		}
		want(t, name, res, err, c.want)
	}
}

// GoCardless: only the resource that the last answer names is fetched.
func TestGoCardless(t *testing.T) {
	t.Parallel()
	const conflict = `{"error":{"type":"invalid_state","errors":[{"reason":"idempotent_creation_conflict","links":{"conflicting_resource_id":"PM1"}}]}}`
	for name, c := range map[string]struct {
		last *persist.Answer
		want string
	}{
		"the conflict":   {&persist.Answer{Status: 409, Body: []byte(conflict)}, `{"payments":{"id":"PM1"}}`},
		"another state":  {&persist.Answer{Status: 409, Body: []byte(strings.Replace(conflict, "idempotent_creation_conflict", "mandate_is_inactive", 1))}, ""},
		"no answer":      {nil, ""},
		"another answer": {&persist.Answer{Status: 500, Body: []byte(conflict)}, ""},
	} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/payments/PM1" {
				t.Errorf("asked %s", r.URL)
			}
			_, _ = io.WriteString(w, `{"payments":{"id":"PM1"}}`)
		})
		rec := s.held("/payments", "")
		rec.Header.Set("Accept-Encoding", "gzip")
		rec.Answer = c.last
		res, err := authorized().GoCardless()(t.Context(), rec)
		want(t, name, res, err, c.want)
		if asked := len(s.asked) > 0; asked != (c.want != "") {
			t.Errorf("%s: asked %q", name, s.asked)
		}
	}
}

// By the profile's lookup: found and the same is known, anything else is not, and no redirect is followed.
func TestByReference(t *testing.T) {
	t.Parallel()
	p := profile.None()
	p.Reference = &profile.Reference{Path: "{path}/{/order}", Same: []profile.Same{{Request: "/order", Resource: "/ref"}, {Request: "/amount", Resource: "/amount"}}}
	for name, c := range map[string]struct {
		status     int
		body, want string
		fails      bool
	}{
		"a text of another spelling": {status: 200, body: `{"ref":"o 1","amount":"100.00"}`}, "the same": {status: 200, body: `{"ref":"o 1","amount":100}`, want: `{"ref":"o 1","amount":100}`},
		"another": {status: 200, body: `{"ref":"o 1","amount":9}`}, "absent": {status: 404, body: `{}`}, "down": {status: 503, body: `{}`, fails: true}, "moved": {status: 302, body: ``, fails: true},
	} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.EscapedPath() != "/orders/o%201" {
				t.Errorf("asked %s", r.URL)
			}
			w.Header().Set("Location", "/login")
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		res, err := authorized().ByReference(p)(t.Context(), s.held("/orders", "order=o+1&amount=100"))
		if c.fails != (err != nil) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			want(t, name, res, err, c.want)
		}
	}
}

// A question that cannot be sent is an error without the query, and one that Authorize refuses is not sent.
func TestAskerErrors(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	rec := s.held("/v1/payment_intents", "metadata[order]=secret-order")
	s.Close()
	_, err := authorized().Stripe("/metadata/order")(t.Context(), rec)
	if err == nil || strings.Contains(err.Error(), "created") || strings.Contains(err.Error(), "secret-order") {
		t.Errorf("%v", err)
	}
	no := errors.New("no key")
	refusing := reconcile.Asker{Authorize: func(*http.Request) error { return no }}
	if _, err := refusing.Stripe("/metadata/order")(t.Context(), rec); !errors.Is(err, no) {
		t.Errorf("%v, want %v", err, no)
	}
}

// Through the client: Stripe keeps a 500 under the key, so that the operation is held; the next pass finds the charge that
// was made all the same, and later calls are answered with it.
func TestHeldChargeIsFound(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	charges := []json.RawMessage{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodGet {
			_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": charges, "has_more": false})
			return
		}
		_ = r.ParseForm()
		charges = append(charges, json.RawMessage(fmt.Sprintf(`{"id":"ch_1","amount":%s,"metadata":{"order":%q}}`, r.PostForm.Get("amount"), r.PostForm.Get("metadata[order]"))))
		w.Header().Set("Stripe-Should-Retry", "false")
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer s.Close()
	client, err := oncehttp.New(oncehttp.Config{
		Journal: memory.New(), Profile: profile.StripeV1(), Reconcile: reconcile.Asker{}.Stripe("/metadata/order", "/amount"),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	charge := func() (*http.Response, error) {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.URL+"/v1/charges", strings.NewReader(url.Values{"amount": {"100"}, "metadata[order]": {"o1"}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return client.DoKey(req, "order:o1")
	}
	if _, err := charge(); !errors.Is(err, oncehttp.ErrHeld) {
		t.Fatalf("%v, want ErrHeld", err)
	}
	for res, err := range client.Resume(t.Context()) {
		if err != nil || res.Outcome != oncehttp.OutcomeConfirmed {
			t.Errorf("%+v, %v", res, err)
		}
	}
	if rec, err := client.Lookup(t.Context(), "order:o1"); err != nil || rec.State != persist.StateSettled || rec.Effect != oncehttp.EffectHappened || rec.Answer == nil || !strings.Contains(string(rec.Answer.Body), `"ch_1"`) {
		t.Errorf("%+v, %v", rec, err)
	}
	if len(charges) != 1 {
		t.Errorf("%d charges, want 1", len(charges))
	}
}

// An answer to a question that is no JSON, such as the page of something in front of the API, settles nothing; one that is
// compressed because the operation asked for that is read all the same.
func TestAnswersThatAreNoJSON(t *testing.T) {
	t.Parallel()
	conflict := &persist.Answer{Status: 409, Body: []byte(`{"error":{"errors":[{"reason":"idempotent_creation_conflict","links":{"conflicting_resource_id":"PM1"}}]}}`)}
	p := profile.None()
	p.Reference = &profile.Reference{Path: "{path}/{/order}", Same: []profile.Same{{Request: "/order", Resource: "/order"}}}
	const resource = `{"order":"o1"}`
	for name, c := range map[string]struct {
		answer string
		want   string
	}{"a page": {"<html><body>Maintenance</body></html>", ""}, "compressed": {resource, resource}} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if name == "compressed" && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				w.Header().Set("Content-Encoding", "gzip")
				zip := gzip.NewWriter(w)
				defer zip.Close()
				_, _ = io.WriteString(zip, c.answer)
				return
			}
			_, _ = io.WriteString(w, c.answer)
		})
		rec := s.held("/orders", "order=o1")
		rec.Header.Set("Accept-Encoding", "gzip")
		rec.Answer = conflict
		for api, ask := range map[string]reconcile.Func{"GoCardless": authorized().GoCardless(), "by reference": authorized().ByReference(p)} {
			res, err := ask(t.Context(), rec)
			if c.want == "" && res.Effect != "" {
				t.Errorf("%s, %s: %+v", api, name, res)
			} else if c.want != "" {
				want(t, api+", "+name, res, err, c.want)
			}
		}
	}
}
