package conformance_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/conformance"
)

// An API whose operations are PUTs is judged with PATCH, and not left without a
// verdict.
func TestOtherMethodOfPut(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	ids := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		key := r.Header.Get("Idempotency-Key")
		if ids[key] == "" {
			ids[key] = fmt.Sprint(len(ids) + 1)
		}
		_, _ = fmt.Fprintf(w, `{"id":%q}`, ids[key])
	}))
	t.Cleanup(server.Close)
	for other, want := range map[string]conformance.Verdict{"": conformance.VerdictSkip, "PUT": conformance.VerdictInconclusive} {
		o := conformance.Options{URL: server.URL + "/p", Method: http.MethodPut, OtherMethod: other, Run: []string{"scope/other-method"}}
		rep, err := conformance.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if c := rep.Cases[0]; c.Verdict != want || c.Reason == "" {
			t.Errorf("with --other-method %q the verdict is %s (%s), want %s: no other method is served", other, c.Verdict, c.Reason, want)
		}
	}
}

// Where X-Request-ID carries the key, no case sends another one beside it.
func TestKeyHeaderIsAlone(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header.Values("X-Request-Id")) != 1 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprintf(w, `{"id":%q}`, r.Header.Get("X-Request-Id"))
	}))
	t.Cleanup(server.Close)
	rep, err := conformance.Run(t.Context(), conformance.Options{URL: server.URL + "/p", KeyHeader: "X-Request-ID", Run: []string{"replay/other-headers"}})
	if err != nil {
		t.Fatal(err)
	}
	if c := rep.Cases[0]; len(c.Exchanges) < 2 || c.Exchanges[0].Status != http.StatusOK {
		t.Errorf("%s (%s): %+v", c.Verdict, c.Reason, c.Exchanges)
	}
}
