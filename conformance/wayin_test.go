package conformance_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp/conformance"
)

// picky is a right server that takes operations in one way only.
type picky struct {
	// key finds the key of a request, or says what is wrong.
	key func(r *http.Request, body []byte) (key, wrong string)
	// status of a refusal; 0: 400.
	status int
	// token hands out keys at a path; nil: none are.
	token func(w http.ResponseWriter, r *http.Request) bool

	mu      sync.Mutex
	answers map[string]string
	asked   atomic.Int32 // operations
}

func (p *picky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.token != nil && p.token(w, r) {
		return
	}
	if r.Method != http.MethodGet {
		p.asked.Add(1)
	}
	body, _ := io.ReadAll(r.Body)
	key, wrong := p.key(r, body)
	if wrong != "" {
		http.Error(w, wrong, or(p.status, http.StatusBadRequest))
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answers == nil {
		p.answers = map[string]string{}
	}
	if p.answers[key] == "" {
		p.answers[key] = fmt.Sprintf(`{"id":"p%d"}`, len(p.answers)+1)
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, p.answers[key])
}

// matching takes a key from a header if it is spelled so.
func matching(header, pattern, wrong string) func(*http.Request, []byte) (string, string) {
	spelled := regexp.MustCompile("^(?:" + pattern + ")$")
	return func(r *http.Request, _ []byte) (string, string) {
		key := r.Header.Get(header)
		if !spelled.MatchString(key) {
			return "", wrong
		}
		return key, ""
	}
}

// formed takes a form, with its key where key says.
func formed(key func(r *http.Request, form url.Values) string) func(*http.Request, []byte) (string, string) {
	return func(r *http.Request, body []byte) (string, string) {
		form, err := url.ParseQuery(string(body))
		if err != nil || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" || form.Get("reference") == "" {
			return "", "cannot be read"
		}
		if found := key(r, form); found != "" {
			return found, ""
		}
		return "", "no key"
	}
}

func handsOut(method, path, answer string) (func(http.ResponseWriter, *http.Request) bool, func(*http.Request, []byte) (string, string)) {
	var given sync.Map
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != path || r.Method != method {
				return false
			}
			token := fmt.Sprint("tok-", n.Add(1))
			given.Store(token, true)
			_, _ = fmt.Fprintf(w, answer, token)
			return true
		}, func(r *http.Request, _ []byte) (string, string) {
			key := r.Header.Get("Idempotency-Key")
			if _, known := given.Load(key); !known {
				return "", "unknown key"
			}
			return key, ""
		}
}

type entrance struct {
	name, flags string
	p           *picky
}

func entrances() []entrance {
	const hex = "[0-9a-f]"
	bare := hex + "{8}-" + hex + "{4}-4" + hex + "{3}-" + hex + "{4}-" + hex + "{12}"
	seven := strings.Replace(bare, "-4", "-7", 1)
	get, getKey := handsOut("GET", "/tokens", `{"data":{"key":%q}}`)
	post, postKey := handsOut("POST", "/tokens", "%s")
	told, toldKey := handsOut("POST", "/v1/checkout-tokens", `{"token":%q}`)
	inField := func(_ *http.Request, body []byte) (string, string) {
		var members map[string]any
		if json.Unmarshal(body, &members) == nil {
			if key, _ := members["idempotency_key"].(string); key != "" {
				return key, ""
			}
		}
		return "", "bad request"
	}
	return []entrance{
		{"a header in use", "--key-header X-Idempotency-Key", &picky{key: matching("X-Idempotency-Key", ".+", "bad request")}},
		{"a header that the refusal names", "--key-header X-Order-Key", &picky{key: matching("X-Order-Key", ".+", "the header X-Order-Key is missing")}},
		{"quotes", "--key-quoted", &picky{key: matching("Idempotency-Key", `"`+bare+`"`, "bad request"), status: 422}},
		{"a server error without quotes", "--key-quoted", &picky{key: matching("Idempotency-Key", `"`+bare+`"`, "oops"), status: 500}},
		{"UUIDs of version 7", "--key-format uuid7", &picky{key: matching("Idempotency-Key", seven, "the key is no UUID v7")}},
		{"a prefix", "--key-prefix ord_", &picky{key: matching("Idempotency-Key", "ord_"+bare, "keys start with 'ord_'")}},
		{"a member of the body", "--key-field /idempotency_key", &picky{key: inField}},
		{"a form", "--content-type application/x-www-form-urlencoded", &picky{key: formed(func(r *http.Request, _ url.Values) string { return r.Header.Get("Idempotency-Key") }), status: 415}},
		{"a field of a form", "--content-type application/x-www-form-urlencoded --key-field idempotency_key", &picky{key: formed(func(_ *http.Request, f url.Values) string { return f.Get("idempotency_key") })}},
		{"a form, and another header", "--content-type application/x-www-form-urlencoded --key-header X-Request-Id", &picky{key: func(r *http.Request, body []byte) (string, string) {
			return formed(func(r *http.Request, _ url.Values) string { return r.Header.Get("X-Request-Id") })(r, body)
		}}},
		{"a token by GET", "--token-path /tokens --token-method GET --token-pointer /data/key", &picky{token: get, key: getKey}},
		{"a token by POST", "--token-path /tokens --token-method POST", &picky{token: post, key: postKey}},
		{"a token whose path the refusal names", "--token-path /v1/checkout-tokens --token-method POST", &picky{token: told, key: func(r *http.Request, b []byte) (string, string) {
			key, wrong := toldKey(r, b)
			return key, strings.Replace(wrong, "unknown key", "get a token at /v1/checkout-tokens first", 1)
		}}},
	}
}

// What servers really use is found by trying, with 12 operations at most, and the
// flags that say so are the ones with which the next run needs no trying.
func TestWayIn(t *testing.T) {
	t.Parallel()
	beside(entrances(), func(_ int, e entrance) {
		server := httptest.NewServer(e.p)
		t.Cleanup(server.Close)
		o := conformance.Options{URL: server.URL + "/payments", Run: []string{"replay/answered"}}
		rep := run(t, o)
		if rep.WayIn != e.flags && e.name != "a form, and another header" {
			t.Errorf("%s: found %q, want %q", e.name, rep.WayIn, e.flags)
		}
		if c := find(t, rep, "replay/answered"); c.Verdict != conformance.VerdictPass || !strings.Contains(rep.Headline, rep.WayIn) {
			t.Errorf("%s: got %s, headline %q, want a pass and the flags", e.name, c.Verdict, rep.Headline)
		}
	})
}

// Nothing is tried where that was forbidden, where another way cannot help, and
// elsewhere than on loopback.
func TestNoWayIn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status, most int
		change       func(o *conformance.Options)
	}{
		"forbidden":     {400, 1, func(o *conformance.Options) { o.NoProbe = true }},
		"no such path":  {404, 1, func(*conformance.Options) {}},
		"credentials":   {401, 1, func(*conformance.Options) {}},
		"never":         {400, 13, func(*conformance.Options) {}},
		"three effects": {400, 3, func(o *conformance.Options) { o.MaxEffects = 3 }},
	} {
		p := &picky{key: matching("X", ".+", "no"), status: c.status}
		server := httptest.NewServer(p)
		t.Cleanup(server.Close)
		o := conformance.Options{URL: server.URL + "/payments"}
		c.change(&o)
		rep, err := conformance.Run(t.Context(), o)
		if rep != nil || !errors.Is(err, conformance.ErrRefuses) || int(p.asked.Load()) > c.most {
			t.Errorf("%s: got %v, %v after %d operations, want ErrRefuses after %d at most", name, rep, err, p.asked.Load(), c.most)
		}
	}
}

// Elsewhere than on loopback other ways are tried only with a bound on effects.
func TestProbesAllowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url        string
		maxEffects int
		want       int
	}{
		{"http://127.0.0.1:1/", 0, 12}, {"http://[::1]:1/", 0, 12}, {"http://localhost:1/", 5, 12},
		{"https://api.example.com/", 0, 0}, {"https://api.example.com/", 5, 5}, {"https://api.example.com/", 500, 12},
	} {
		o := conformance.Options{URL: c.url, MaxEffects: c.maxEffects, AllowHosts: []string{"api.example.com"}}
		if got := conformance.ProbesAllowed(o); got != c.want {
			t.Errorf("%s with %d: got %d, want %d", c.url, c.maxEffects, got, c.want)
		}
	}
}

// A run begins no more operations than it may, and says that it was cut.
func TestMaxEffects(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		s, url := newSample(t, choices{}, quirk{})
		o := sampleOptions(url)
		o.MaxEffects = 20
		rep := run(t, o)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.made > 20 || s.made < 10 || !rep.Cut || rep.ExitStatus() != 3 && rep.ExitStatus() != 4 {
			t.Errorf("got %d effects, cut %t, status %d, want 20 at most and a cut", s.made, rep.Cut, rep.ExitStatus())
		}
	})
}

// What does not go together is refused.
func TestKeyOptions(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]conformance.Options{
		"KeyFormat": {KeyFormat: "ulid"}, "KeyPrefix": {KeyPrefix: "a b"}, "KeyField": {KeyField: "/k", KeyHeader: "X"},
		"KeyQuoted": {KeyField: "/k", KeyQuoted: true}, "TokenMethod": {TokenPath: "/t", TokenMethod: "PUT"},
		"TokenPath": {TokenPointer: "/t"}, "TokenPointer": {TokenPath: "/t", TokenPointer: "t"}, "MaxEffects": {MaxEffects: -1},
	} {
		o.URL = "http://127.0.0.1:1/"
		var ue *conformance.UsageError
		if err := o.Validate(); !errors.As(err, &ue) || ue.Option != name {
			t.Errorf("%s: got %v, want it named", name, err)
		}
	}
}
