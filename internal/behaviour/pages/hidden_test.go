package pages_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// An API whose outcomes stand in its 200.
type hidingAPI struct {
	path, kind, body string // of the request
	answers          map[string]string
	verdicts         string // of a profile file
}

// hidingAPIs are one of each kind. The answers are those of Shopify's documentation (userErrors with a code, and their absence),
// of the JSON-RPC 2.0 specification, section 5, and of SOAP 1.1, section 4.4.
func hidingAPIs() map[string]hidingAPI {
	return map[string]hidingAPI{
		"GraphQL": {
			"/admin/api/2026-04/graphql.json", "application/json", `{"query":"mutation($key: String!) { refundCreate(input: {}) @idempotent(key: $key) { refund { id } userErrors { code } } }"}`,
			map[string]string{
				"succeeded": `{"data":{"refundCreate":{"refund":{"id":"gid://shopify/Refund/1"},"userErrors":[]}}}`,
				"refused":   `{"data":{"refundCreate":{"refund":null,"userErrors":[{"field":["orderId"],"code":"NOT_FOUND","message":"Order does not exist"}]}}}`,
				"busy":      `{"data":{"refundCreate":{"refund":null,"userErrors":[{"code":"IDEMPOTENCY_CONCURRENT_REQUEST"}]}}}`,
				"mismatch":  `{"data":{"refundCreate":{"refund":null,"userErrors":[{"code":"IDEMPOTENCY_KEY_PARAMETER_MISMATCH"}]}}}`,
				"unknown":   `{"errors":[{"message":"Internal error. Looks like something went wrong on our end."}]}`,
			},
			`[{"pointer":"/data/refundCreate/userErrors","equals":["[]"],"proves":"succeeded"},
			  {"pointer":"/data/refundCreate/userErrors/0/code","proves":"refused"},
			  {"pointer":"/data/refundCreate/userErrors/0/code","equals":["IDEMPOTENCY_CONCURRENT_REQUEST"],"proves":"in_progress"},
			  {"pointer":"/data/refundCreate/userErrors/0/code","equals":["IDEMPOTENCY_KEY_PARAMETER_MISMATCH"],"proves":"mismatch"}]`,
		},
		"JSON-RPC": {
			"/rpc", "application/json", `{"jsonrpc":"2.0","method":"pay","params":[100],"id":1}`,
			map[string]string{
				"succeeded": `{"jsonrpc":"2.0","result":{"id":"p1"},"id":1}`,
				"refused":   `{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid params"},"id":1}`,
				"busy":      `{"jsonrpc":"2.0","error":{"code":-32050,"message":"in progress"},"id":1}`,
				"mismatch":  `{"jsonrpc":"2.0","error":{"code":-32051,"message":"other request"},"id":1}`,
				"unknown":   `{"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error"},"id":1}`,
			},
			`[{"pointer":"/result","proves":"succeeded"}, {"pointer":"/error/code","proves":"refused"}, {"pointer":"/error/code","equals":["-32603"],"proves":"unknown"},
			  {"pointer":"/error/code","equals":["-32050"],"proves":"in_progress"}, {"pointer":"/error/code","equals":["-32051"],"proves":"mismatch"}]`,
		},
		"SOAP": {
			"/soap", "text/xml", `<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body><pay/></soap:Body></soap:Envelope>`,
			map[string]string{
				"unknown": `<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body><payResponse><id>1</id></payResponse></soap:Body></soap:Envelope>`,
			},
			`[{"pointer":"/Envelope/Body/payResponse","proves":"succeeded"}]`,
		},
	}
}

// loaded returns the profile of a file that has these verdicts.
func (api hidingAPI) loaded(t *testing.T) *profile.Profile {
	t.Helper()
	p, err := profile.Load(strings.NewReader(`{"name": "hiding", "version": "1",
		"sources": {"docs": {"ref": "https://example.com/docs", "date": "2026-11-30", "confidence": "excerpt"}},
		"carrier": {"value": {"place": "header", "name": "Idempotency-Key"}, "source": "docs"}, "methods": {"value": ["POST"], "source": "docs"},
		"verdicts": {"value": ` + api.verdicts + `, "source": "docs"}}`))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// play serves the API by the mock, which gives each answer in turn.
func (api hidingAPI) play(t *testing.T, p *profile.Profile, answers ...string) (*mockserver.Server, string) {
	t.Helper()
	var n atomic.Int64
	m := mockserver.New(mockserver.Config{Profile: p, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", api.kind)
		_, _ = io.WriteString(w, answers[min(int(n.Add(1)), len(answers))-1])
	})})
	s := httptest.NewServer(m)
	t.Cleanup(func() { s.Close(); _ = m.Close() })
	return m, s.URL + api.path
}

// TestOutcomesInA200: an operation ends as the body of its 200 says.
func TestOutcomesInA200(t *testing.T) {
	t.Parallel()
	for name, api := range hidingAPIs() {
		for said, text := range api.answers {
			t.Run(name+" "+said, func(t *testing.T) {
				t.Parallel()
				p := api.loaded(t)
				m, url := api.play(t, p, text)
				j := memory.New()
				c, err := oncehttp.New(oncehttp.Config{Journal: j, Profile: p, Retry: oncehttp.Policy{MaxAttempts: 2, MinDelay: 1, MaxDelay: 1}})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				do := func() (*http.Response, error) {
					req, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(api.body))
					if err != nil {
						t.Fatal(err)
					}
					req.Header.Set("Content-Type", api.kind)
					return c.DoKey(req, "k")
				}
				resp, err := do()
				rec := clienttest.Lookup(t, c, "k")
				got := fmt.Sprint(rec.State, " ", rec.HoldReason, " ", rec.FinalEffect(), " ", oncehttp.OutcomeOf(&rec))
				want := map[string]string{
					"succeeded": "confirmed  happened confirmed", "refused": "confirmed  refused refused", "unknown": "held unclear  unknown",
					"mismatch": "mismatched   mismatch", "busy": "pending   unknown",
				}[said]
				if got != want {
					t.Errorf("the record is %q (%v), want %q", got, err, want)
				}
				effects := map[bool]int{true: 1}[said == "succeeded" || name == "SOAP" || said == "unknown"]
				if n := m.Ledger().Snapshot().Effects; said != "busy" && said != "mismatch" && said != "unknown" && n != effects {
					t.Errorf("%d effects in the ledger, want %d", n, effects)
				}
				switch said {
				case "succeeded", "refused":
					if err != nil || oncehttp.ResultOf(resp).Outcome != oncehttp.OutcomeOf(&rec) || clienttest.Read(t, resp) != text {
						t.Fatalf("%v, %+v", err, oncehttp.ResultOf(resp))
					}
					again, err := do()
					if err != nil || oncehttp.ResultOf(again).Effect != rec.FinalEffect() || oncehttp.ResultOf(again).Source != oncehttp.SourceJournal {
						t.Errorf("again: %v, %+v", err, oncehttp.ResultOf(again))
					}
				case "mismatch":
					if !errors.Is(err, oncehttp.ErrKeyReused) {
						t.Errorf("%v", err)
					}
				case "busy":
					if !errors.Is(err, oncehttp.ErrInFlight) || rec.Sends != 2 {
						t.Errorf("%v after %d sends", err, rec.Sends)
					}
				default:
					if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrHeld) {
						t.Errorf("%v", err)
					}
				}
			})
		}
	}
}

// TestGraphQLIsHeldByShape, and XML is not, where no fact says that outcomes stand in bodies.
func TestGraphQLIsHeldByShape(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]persist.State{"GraphQL": persist.StateHeld, "JSON-RPC": persist.StateConfirmed, "SOAP": persist.StateConfirmed} {
		api := hidingAPIs()[name]
		_, url := api.play(t, profile.Draft07(), api.answers["unknown"])
		c, err := oncehttp.New(oncehttp.Config{Journal: memory.New()})
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(api.body))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.DoKey(req, "k")
		if rec := clienttest.Lookup(t, c, "k"); rec.State != want || want == persist.StateHeld && rec.HoldReason != persist.HoldUnclear {
			t.Errorf("%s: %v (%s), %v", name, rec.State, rec.HoldReason, err)
		}
		_ = c.Close()
	}
}

// TestGraphQLElsewhere: a failure of a GraphQL API at any path is held, with a cause that says so; the same answer of a plain API is a success.
func TestGraphQLElsewhere(t *testing.T) {
	t.Parallel()
	for body, held := range map[string]bool{`{"query":"{ pay }"}`: true, `{"query":"query Pay { pay(id: 1) { id } }","variables":{}}`: true, `{"query":"blue shoes"}`: false, `{"id":"1"}`: false} {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200, Body: `{"errors":[{"message":"no funds"}],"data":null}`}}}
		c, _ := clienttest.New(t, w, nil)
		_, err := c.DoKey(clienttest.Post(t, body), "k")
		rec := clienttest.Lookup(t, c, "k")
		if held != (rec.State == persist.StateHeld && rec.HoldReason == persist.HoldUnclear && errors.Is(err, oncehttp.ErrHeld)) || !held && (rec.State != persist.StateConfirmed || err != nil) {
			t.Errorf("%s: %v (%s), %v", body, rec.State, rec.HoldReason, err)
		}
		if held && !strings.Contains(err.Error(), "answered 200 with errors and no data, as a GraphQL API says that it failed") {
			t.Errorf("%v", err)
		}
	}
}

// TestVerdictsAreFrozen: a client whose profile of that name has no verdicts takes no 200 for a success of an operation that was begun
// under some.
func TestVerdictsAreFrozen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		with, without := hidingAPIs()["JSON-RPC"].loaded(t), hidingAPIs()["JSON-RPC"].loaded(t)
		without.Verdicts = nil
		lost, answered := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200, Body: `{"error":{"code":1}}`}}}
		c, _ := clienttest.New(t, lost, func(cfg *oncehttp.Config) { cfg.Journal, cfg.Profile, cfg.Retry.MaxAttempts = j, with, 1 })
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		other, _ := clienttest.New(t, answered, func(cfg *oncehttp.Config) { cfg.Journal, cfg.Profile, cfg.Retry.MaxAttempts = j, without, 1 })
		_, err := other.DoKey(clienttest.Post(t, "{}"), "k")
		if rec := clienttest.Lookup(t, other, "k"); rec.State != persist.StateHeld || rec.HoldReason != persist.HoldUnread || answered.Count() != 1 {
			t.Errorf("%v: %v (%s) after %d sends", err, rec.State, rec.HoldReason, answered.Count())
		}
	})
}
