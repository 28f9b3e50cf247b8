package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
)

// Every hop is sent to more often than there are orders, and acts once for each.
func TestRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(&out, t.TempDir(), orders); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, name := range []string{"A", "B", "C"} {
		var n, sends, effects int
		_, rest, _ := strings.Cut(out.String(), name+": ")
		if _, err := fmt.Sscanf(rest, "%d orders, %d sends, %d effects\n", &n, &sends, &effects); err != nil {
			t.Fatalf("%s: %v in\n%s", name, err, &out)
		}
		if n != orders || effects != orders || sends <= orders {
			t.Errorf("%s: %d orders, %d sends, %d effects; want %d, more, %[5]d", name, n, sends, effects, orders)
		}
	}
	if !strings.HasSuffix(out.String(), "\none effect at each hop for each order\n") {
		t.Errorf("got\n%s", &out)
	}
}

// A hop that acts twice is found.
func TestReport(t *testing.T) {
	t.Parallel()
	server := mockserver.New(mockserver.Config{})
	defer server.Close()
	for range 2 { // without a key each is an effect of its own
		req := httptest.NewRequest("POST", "/orders", strings.NewReader("{}"))
		server.ServeHTTP(httptest.NewRecorder(), req)
	}
	if err := report(io.Discard, []*service{{name: "A", server: server}}, 1); err == nil {
		t.Error("two effects of one order are reported as well")
	}
	if err := report(io.Discard, []*service{{name: "A", server: server}}, 3); err == nil {
		t.Error("a lost order is reported as well")
	}
}

// Without a key there is nothing to derive from: the hop refuses, and calls nobody.
func TestServiceWithoutKey(t *testing.T) {
	t.Parallel()
	s := &service{name: "B", next: "http://127.0.0.1:1"}
	w := httptest.NewRecorder()
	oncehttp.InheritKey(principal)(s).ServeHTTP(w, httptest.NewRequest("POST", "/orders", strings.NewReader("{}")))
	if w.Code != http.StatusBadRequest {
		t.Errorf("answered %d", w.Code)
	}
}
